/** So many rows one statement reads at most of a table that grows with the payouts: at 10,000 a second it is soon done. */
export const PAGE = 5_000

/**
 * Runs a statement about the rows after a key, again and again from where it ended. `last`, the same in every row: the
 * key of the last one that it read; null: there were none. It must have a row even where it found nothing in its page.
 */
export async function* pages<Row extends { last: string | null }>(
  next: (page: { after: string; limit: number }) => Promise<Row[]>,
): AsyncGenerator<Row[]> {
  for (let after = ''; ; ) {
    const rows = await next({ after, limit: PAGE })
    const last = rows[0]?.last ?? null
    if (last === null) return
    yield rows
    after = last
  }
}

/** The same for a statement that changes its page and tells nothing of it. */
export async function every(next: Parameters<typeof pages<{ last: string | null }>>[0]): Promise<void> {
  for await (const _ of pages(next));
}
