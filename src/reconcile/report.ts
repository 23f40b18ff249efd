import {
  compareStatement,
  type StatementDifference,
  type StatementLine,
} from '../oracle/compare-statement.ts'
import { type Paise, sum } from '../payout/money.ts'
import type { Database } from '../platform/postgres.ts'
import { type Movement, movementOver } from './movement.ts'
import {
  type Differing,
  differing,
  namedBy,
  paidInPeriod,
  progress,
  type Totals,
  totals,
} from './sql/payouts.ts'
import type { Reconciliation } from './sql/reconciliations.ts'

/** Everything that a run found. Amounts in paise. */
export type Report = {
  run: Reconciliation
  /** Payouts of the period, and those of which the gateway told. */
  listed: number
  asked: number
  totals: Totals
  /** The oldest first. */
  differing: Differing[]
  balance: Movement
  /** Null where none was given. */
  statement: { lines: number; amount: Paise; differences: StatementDifference[] } | null
}

/** What a run found until now, beside the lines of a statement if there is one. */
export async function reportOf(
  run: Reconciliation,
  lines: readonly StatementLine[] | null,
  db: Database,
): Promise<Report> {
  const { reconciliationId, merchantId } = run
  const [counted] = await db.run(progress, { reconciliationId })
  const [added] = await db.run(totals, { reconciliationId, merchantId })
  if (!counted || !added) throw new Error('a count has a row')
  return {
    run,
    ...counted,
    totals: added,
    differing: await db.run(differing, { reconciliationId, merchantId }),
    balance: await movementOver(run, db),
    statement: lines && (await besideStatement(run, lines, db)),
  }
}

async function besideStatement(
  { merchantId, periodFrom: from, periodTo: to }: Reconciliation,
  lines: readonly StatementLine[],
  db: Database,
) {
  const paid = await db.run(paidInPeriod, { merchantId, from, to })
  const named = await db.run(namedBy, {
    merchantId,
    utrs: lines.flatMap(({ utr }) => utr ?? []),
    orderNos: lines.flatMap(({ mchOrderNo }) => mchOrderNo ?? []),
  })
  const amount = sum(lines.map((line) => line.amount))
  return { lines: lines.length, amount, differences: compareStatement(lines, paid, named) }
}

/** Whether everything was told, and nothing differs. */
export const agrees = ({ listed, asked, differing, balance, statement }: Report): boolean =>
  asked === listed &&
  differing.length === 0 &&
  balance.kind !== 'missing' &&
  (statement === null || statement.differences.length === 0)
