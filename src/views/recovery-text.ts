/** What a recovery of one merchant came to; `found` as in src/operators/restore/sql/list.ts. */
export type MerchantFindings = {
  merchantId: string
  /** `open`: something is still to be asked about, so that it stays fenced. */
  kind: 'recovered' | 'open'
  ending: 'all-asked' | 'interrupted' | 'silent' | 'failed'
  findings: readonly { found: string | null; count: number }[]
}

const WORDS: Readonly<Record<string, string>> = {
  paid: 'paid',
  failed: 'failed',
  cancelled: 'cancelled, as was published before',
  rejected: 'rejected: as was published before, or by the rules of today, and the gateway has none of them',
  processing: 'under way at the gateway',
  review: 'for a person to decide: payoutd payout review',
  'never-sent': 'never sent: they go on where they wait',
  'not-found':
    'sent once, and not found: those now in review wait for a person (payoutd payout review), the others go on where they are',
}

/** To be told while everything is still fenced, so that a person can put it right before anything is sent. */
export const ONLY_IN_DATABASE = `What only the database held is again as it was at the restore, and payoutd cannot read it back:
  - pauses: look at payoutd merchants, and pause now whom you had paused, as sending goes on after this
  - adopted gateway settings: compare them with yours, in payoutd acts list
  - cancelled batches, and what a person last cancelled, released or resolved: look at payoutd payout list and payout review
  - acknowledged anomalies: payoutd anomaly list tells them anew
  - callbacks kept for merchants that were not in the settings: payoutd reconcile asks about their orders
What people did to payouts may be in payout.events (evidence OPERATOR). All that they did is in payoutd acts list of the former
database, if it can still be read.`

/** A line for the merchant, and one for each kind of finding. */
export function recoveryText({ merchantId, kind, ending, findings }: MerchantFindings): string {
  const total = findings.reduce((sum, { count }) => sum + count, 0)
  const lines = findings.map(({ found, count }) => `  ${count} ${inWords(found)}`)
  const title =
    kind === 'recovered'
      ? `${merchantId}: all ${total} payouts that had not ended were asked about, and sending goes on`
      : `${merchantId} stays fenced: ${whyOpen(ending)}; the same command goes on`
  return [title, ...lines].join('\n')
}

const inWords = (found: string | null): string =>
  found === null ? 'not told of, or not found without a presence check' : (WORDS[found] ?? found)

function whyOpen(ending: MerchantFindings['ending']): string {
  switch (ending) {
    case 'interrupted':
      return 'it was interrupted'
    case 'failed':
      return 'an error ended its recovery'
    case 'silent':
      return 'the gateway told nothing many times in a row, see payoutd doctor'
    case 'all-asked':
      return 'the gateway did not tell of all payouts, or at one of the accounts no order is known to exist that it finds: a former account that was never used can be taken out of formerAccounts'
  }
}
