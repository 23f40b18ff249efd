/**
 * The most rows that one statement reads from a table that grows with the payouts: at 10,000 rows a second it ends
 * soon.
 */
export const PAGE = 5_000

/**
 * Runs a statement on the rows after a key, again and again from where the last run ended. `last`, the same in
 * every row: the key of the last row that the run read; null: there were none. The statement must return a row even
 * if it found nothing in its page.
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

/** The same for a statement that changes its page and returns nothing about it. */
export async function every(
  next: (page: { after: string; limit: number }) => Promise<{ last: string | null }[]>,
): Promise<void> {
  for await (const _ of pages(next));
}
