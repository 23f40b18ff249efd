import { formatRupees, type Paise, paise } from '../domain/money.ts'
import { formatTime } from '../domain/times.ts'
import { pages } from '../platform/postgres/pages.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { type Declared, declaredInAll, declaredOf, pageOfBatch } from './sql/payouts/batches.ts'

/** How many of a batch's files are listed one by one. */
const MOST_FILES = 20

/**
 * What the files of a batch declared, and how much of it the ledger has, ended or not; `amount` in paise. `declared`: by all
 * files together, and by each of the first ones.
 */
export type BatchTotals = {
  declared: { files: number; rows: bigint; amount: Paise; first: Declared[] }
  here: { count: number; amount: Paise }
}

/** Reads a batch by pages. If nothing is declared, none of its payouts came in a file, or the declaration has yet to arrive. */
export async function batchTotals(
  db: Database,
  batch: { merchantId: string; batchId: string },
): Promise<BatchTotals> {
  const [all] = await db.run(declaredInAll, batch)
  if (!all) throw new Error('a statement that counts has one row')
  const declared = { ...all, first: await db.run(declaredOf, { ...batch, limit: MOST_FILES }) }
  const here = { count: 0, amount: 0n }
  if (declared.files === 0) return { declared, here: { count: 0, amount: paise(0n) } }
  for await (const [page] of pages((page) => db.run(pageOfBatch, { ...batch, ...page }))) {
    here.count += page?.count ?? 0
    here.amount += page?.amount ?? 0n
  }
  return { declared, here: { count: here.count, amount: paise(here.amount) } }
}

/** Said of the sum over several files. */
export const COUNTED_IN_EACH = '(a row that is in several files, such as a corrected one, counts in each)'

/** One line, with the totals of the first files and of all; null: nothing was declared. */
export function batchTotalsText({ declared, here }: BatchTotals): string | null {
  const { files, rows, amount, first } = declared
  if (files === 0) return null
  const each = first.map(
    ({ rows, amount, declaredAt }) => `${rows} of ${formatRupees(amount)} (${formatTime(declaredAt)})`,
  )
  const more = files > first.length ? ` and ${files - first.length} more` : ''
  const all = files > 1 ? `${rows} of ${formatRupees(amount)} in ${files} files ${COUNTED_IN_EACH}: ` : ''
  return `declared ${all}${each.join(', ')}${more}, here ${here.count} of ${formatRupees(here.amount)}`
}
