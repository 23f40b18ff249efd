/** So many payouts get a line each. */
export const LISTED = 20

/** A line for each payout, the first ones in full; `others` sums up the rest. */
export function eachText<Outcome extends { payoutId: string }>(
  outcomes: readonly Outcome[],
  inWords: (outcome: Outcome) => string,
  others: (rest: readonly Outcome[]) => string,
): string {
  const lines = outcomes.slice(0, LISTED).map((outcome) => `payout ${outcome.payoutId} ${inWords(outcome)}`)
  const rest = outcomes.slice(LISTED)
  return [...lines, ...(rest.length > 0 ? [others(rest)] : [])].join('\n')
}
