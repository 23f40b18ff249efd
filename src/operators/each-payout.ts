/** The payouts of all pages, in the order of their ids. `next` gets the id after which its page begins. */
export async function* eachPayout<Row extends { payoutId: string }>(
  next: (after: string) => Promise<readonly Row[]>,
): AsyncGenerator<Row> {
  for (let after = ''; ; ) {
    const page = await next(after)
    yield* page
    const last = page.at(-1)
    if (!last) return
    after = last.payoutId
  }
}
