import { readFile } from 'node:fs/promises'
import { parse } from 'csv-parse/sync'
import { z } from 'zod'
import type { RefusedRow } from '../../../src/batches/file/check-file.ts'
import { type Discrepancy, discrepancy } from '../../oracle/check.ts'
import type { ExpectedOutcome } from '../../oracle/outcome.ts'

const expectation = z.object({
  row: z.coerce.number().int(),
  outcome: z.enum(['rejected', 'duplicate', 'failed', 'paid']),
  column: z.string(),
  rule: z.string(),
  why: z.string(),
})
/** The expected result of one row planted in an example payroll. */
export type Expectation = z.output<typeof expectation>

/** The expectations beside an example payroll; null for a file that has none. */
export async function readExpectations(payrollPath: string): Promise<Expectation[] | null> {
  const text = await readFile(expectationsPath(payrollPath), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  return text === null ? null : z.array(expectation).parse(parse(text, { columns: true, bom: true }))
}

export const expectationsPath = (payrollPath: string): string =>
  payrollPath.replace(/(\.csv)?$/, '.expected.csv')

/** Rows with another result than expected: planted rows have their own expectation, all others must be paid. */
export function checkExpectations(
  expectations: readonly Expectation[],
  refused: readonly RefusedRow[],
  payouts: readonly ExpectedOutcome[],
): Discrepancy[] {
  const fates = fatesOf(refused, payouts)
  const planted = new Set(expectations.map(({ row }) => row))
  const wrong = (row: number, detail: string) => discrepancy('expectation', `row ${row}`, detail)
  return [
    ...expectations
      .filter((expected) => !isMet(expected, fates.get(expected.row)))
      .map(({ row, outcome, column, rule, why }) => {
        const wanted = [outcome, column, rule].filter((word) => word !== '').join(' ')
        return wrong(row, `must be ${wanted} (${why}), is ${describe(fates.get(row))}`)
      }),
    ...[...fates]
      .filter(([row, fate]) => !planted.has(row) && fate !== 'PAID')
      .map(([row, fate]) => wrong(row, `is an ordinary row, and is ${describe(fate)}`)),
  ]
}

/** How a payout ended, or its state; or the faults of its row. A duplicate has none. */
type Fate = string | RefusedRow['faults']

function fatesOf(refused: readonly RefusedRow[], payouts: readonly ExpectedOutcome[]): Map<number, Fate> {
  return new Map<number, Fate>([
    ...refused.map(({ row, faults }) => [row, faults] as const),
    ...payouts.map(({ asked, ends, state }) => [asked.row, ends[0]?.status ?? state ?? 'lost'] as const),
  ])
}

function isMet({ outcome, column, rule }: Expectation, fate: Fate | undefined): boolean {
  switch (outcome) {
    case 'rejected':
      return Array.isArray(fate) && fate.some((fault) => fault.column === column && fault.rule === rule)
    case 'duplicate':
      return fate === undefined
    case 'failed':
    case 'paid':
      return fate === outcome.toUpperCase()
  }
}

const describe = (fate: Fate | undefined): string => {
  if (fate === undefined) return 'a duplicate'
  return typeof fate === 'string'
    ? fate
    : `rejected for ${fate.map(({ column, rule }) => `${column} ${rule}`).join(', ')}`
}
