/** So many payouts in one transaction. */
const AT_ONCE = 500

/** Does `work` for a part of the payouts after the other, each once, and resolves with what it came to in their order. */
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
