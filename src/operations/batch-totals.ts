import { formatRupees, type Paise, paise } from '../payout/money.ts'
import { pages } from '../platform/pages.ts'
import type { Database } from '../platform/postgres.ts'
import { type Declared, declaredOf, pageOfBatch } from './sql/batches.ts'
import { formatTime } from './times.ts'

/** What the files of a batch declared, and what of it is in the ledger, ended or not; `amount` in paise. */
export type BatchTotals = { declared: Declared[]; here: { count: number; amount: Paise } }

/** Reads a batch by pages. Nothing declared: none of its payouts came in a file, or the declaration is still to come. */
export async function batchTotals(
  db: Database,
  batch: { merchantId: string; batchId: string },
): Promise<BatchTotals> {
  const declared = await db.run(declaredOf, batch)
  const here = { count: 0, amount: 0n }
  if (declared.length === 0) return { declared, here: { count: 0, amount: paise(0n) } }
  for await (const [page] of pages((page) => db.run(pageOfBatch, { ...batch, ...page }))) {
    here.count += page?.count ?? 0
    here.amount += page?.amount ?? 0n
  }
  return { declared, here: { count: here.count, amount: paise(here.amount) } }
}

/** One line, with the totals of each file; null: nothing was declared. */
export function batchTotalsText({ declared, here }: BatchTotals): string | null {
  if (declared.length === 0) return null
  const files = declared.map(
    ({ rows, amount, declaredAt }) => `${rows} of ${formatRupees(amount)} (${formatTime(declaredAt)})`,
  )
  return `declared ${files.join(', ')}, here ${here.count} of ${formatRupees(here.amount)}`
}
