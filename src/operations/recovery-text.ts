/** What a recovery of one merchant came to; `found` as in src/recovery/sql/list.ts. */
export type MerchantFindings = {
  merchantId: string
  /** `open`: something is still to be asked about, so that it stays fenced. */
  kind: 'recovered' | 'open'
  ending: 'all-asked' | 'interrupted' | 'silent'
  findings: readonly { found: string | null; count: number }[]
}

const WORDS: Readonly<Record<string, string>> = {
  paid: 'paid',
  failed: 'failed',
  cancelled: 'cancelled, as was published before',
  rejected: 'rejected, as was published before',
  processing: 'under way at the gateway',
  review: 'known to the gateway, but for a person to decide: payoutd payout review',
  'never-sent': 'never sent: they go on where they wait',
  'not-found':
    'sent once, and not found: those now in review wait for a person (payoutd payout review), the others go on where they are',
}

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
  found === null ? 'not told of, or not found without a positive control' : (WORDS[found] ?? found)

function whyOpen(ending: MerchantFindings['ending']): string {
  switch (ending) {
    case 'interrupted':
      return 'it was interrupted'
    case 'silent':
      return 'the gateway told nothing many times in a row, see payoutd doctor'
    case 'all-asked':
      return 'the gateway did not tell of all payouts, or these settings do not find an order known to exist'
  }
}
