/** Payouts, or messages, per transaction. With the largest messages, a statement for this many takes some seconds. */
const AT_ONCE = 500

/** Calls `work` for one part of the items after another, each item once. Resolves to all results in their order. */
export async function inBatches<Item, Outcome>(
  items: readonly Item[],
  work: (part: Item[]) => Promise<Outcome[]>,
): Promise<Outcome[]> {
  const unique = [...new Set(items)]
  const outcomes: Outcome[] = []
  for (let from = 0; from < unique.length; from += AT_ONCE) {
    outcomes.push(...(await work(unique.slice(from, from + AT_ONCE))))
  }
  return outcomes
}
