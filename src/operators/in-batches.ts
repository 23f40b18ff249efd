/** Payouts per transaction. */
const AT_ONCE = 500

/** Calls `work` for one part of the payouts after another, each payout once. Resolves to all results in their order. */
export async function inBatches<Outcome>(
  payoutIds: readonly string[],
  work: (part: string[]) => Promise<Outcome[]>,
): Promise<Outcome[]> {
  const ids = [...new Set(payoutIds)]
  const outcomes: Outcome[] = []
  for (let from = 0; from < ids.length; from += AT_ONCE) {
    outcomes.push(...(await work(ids.slice(from, from + AT_ONCE))))
  }
  return outcomes
}
