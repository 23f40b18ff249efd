/**
 * The result of recovering one merchant; `found` as in src/operators/recovery/sql/list.ts, `kind` and `isUnused` as in
 * src/operators/recovery/recovery.ts.
 */
export type MerchantFindings = {
  merchantId: string
  kind: 'recovered' | 'open' | 'outdated'
  isUnused?: boolean
  /** Some queries had no answer that counts. */
  isSilent?: boolean
  ending: 'all-asked' | 'interrupted' | 'silent' | 'failed'
  findings: readonly { found: string | null; count: number }[]
}

const WORDS: Readonly<Record<string, string>> = {
  paid: 'paid',
  failed: 'failed',
  cancelled: 'cancelled, as published before',
  rejected: 'rejected, as published before or by the current rules; the gateway has none of them',
  processing: 'in progress at the gateway',
  review: 'for a person to decide: payoutd payout review',
  'never-sent': 'never sent: they keep waiting in their state',
  'not-found':
    'sent once, and not found: those in review wait for a person (payoutd payout review), the others keep waiting in their state',
}

/** Shown while everything is still fenced, so that a person can correct it before payoutd sends anything. */
export const ONLY_IN_DATABASE = `payoutd cannot read back what only the database contained. It is again as it was at the restore:
  - pauses: check payoutd merchants, and pause merchants again now, because sending continues after this
  - adopted gateway settings: compare payoutd acts list with your settings
  - cancelled batches, and what people last cancelled, released or resolved: check payoutd payout list and payout review
  - acknowledged anomalies: payoutd anomaly list shows them as new
  - callbacks kept for merchants that were not in the settings: payoutd reconcile queries their orders
payout.events may show what people did to payouts (evidence OPERATOR). If you can still read the former database, payoutd acts
list there shows everything that they did.`

/** A line for the merchant, and one for each kind of finding. */
export function recoveryText(of: MerchantFindings): string {
  const { merchantId, kind, findings } = of
  const total = findings.reduce((sum, { count }) => sum + count, 0)
  const lines = findings.map(({ found, count }) => `  ${count} ${inWords(found)}`)
  const title =
    kind === 'recovered'
      ? `${merchantId}: payoutd queried all ${total} payouts that had not ended; sending continues`
      : `${merchantId} stays fenced: ${whyOpen(of)}; run payoutd recover --merchant ${merchantId} to continue`
  return [title, ...lines].join('\n')
}

const inWords = (found: string | null): string =>
  found === null ? 'not answered, or not found without a presence check' : (WORDS[found] ?? found)

function whyOpen({ merchantId, kind, isUnused, isSilent, ending }: MerchantFindings): string {
  if (kind === 'outdated')
    return 'what the gateway answered before no longer counts, because payoutd found meanwhile that the ledger lacks something more, or the gateway reported an order that it had not had'
  switch (ending) {
    case 'interrupted':
      return 'it was interrupted'
    case 'failed':
      return 'an error ended its recovery'
    case 'silent':
      return 'many queries in a row had no answer to rely on, see payoutd doctor'
    case 'all-asked':
      if (isSilent) return 'about some payouts it had no answer to rely on, see payoutd doctor'
      return isUnused
        ? `payoutd knows no order of it for a presence check. If you know that nothing was ever sent for it, run payoutd recover --nothing-lost --merchant ${merchantId}`
        : 'one of its accounts found no order that is known to exist there, so what it did not find may exist nevertheless. payoutd doctor names such orders: ask the gateway about them. You can remove a former account that was never used from formerAccounts'
  }
}
