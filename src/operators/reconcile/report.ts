import type { Instant } from '../../domain/instant.ts'
import { type Paise, sum } from '../../domain/money.ts'
import { PAGE, pages } from '../../platform/postgres/pages.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { type BalanceChange, balanceChangeOver } from './balance-change.ts'
import {
  compareStatement,
  type StatedPayout,
  type StatementDifference,
  type StatementLine,
} from './compare-statement.ts'
import { progressOf } from './reconcile.ts'
import {
  type Differing,
  differing,
  namedBy,
  paidInPeriod,
  type ReconcileTotals,
  totals,
} from './sql/payouts.ts'
import type { Reconciliation } from './sql/reconciliations.ts'

/** Everything that a run found, amounts in paise. */
export type Report = {
  run: Reconciliation
  /** Payouts of the period, and how many of them the gateway answered about. */
  listed: number
  asked: number
  /** The first and the last answer: the run does not ask again about payouts that it has an answer for. */
  firstTold: Instant | null
  lastTold: Instant | null
  totals: ReconcileTotals
  /** The oldest first. */
  differing: Differing[]
  balance: BalanceChange
  /** Null: no statement was given. */
  statement: { lines: number; amount: Paise; differences: StatementDifference[] } | null
}

/** What a run has found so far, with the lines of a statement if there is one. Reads by pages, so that a run may be large. */
export async function reportOf(
  run: Reconciliation,
  lines: readonly StatementLine[] | null,
  db: Database,
): Promise<Report> {
  return {
    run,
    ...(await progressOf(run, db)),
    totals: await totalsOf(run, db),
    differing: await differingIn(run, db),
    balance: await balanceChangeOver(run, db),
    statement: lines && (await besideStatement(run, lines, db)),
  }
}

/** The state of a run: how many payouts the gateway answered about, how many differ, how many were settled. */
export async function standOf(run: Reconciliation, db: Database) {
  const { settled } = await totalsOf(run, db)
  const { listed, asked } = await progressOf(run, db)
  return { listed, asked, differing: (await differingIn(run, db)).length, settled }
}

async function totalsOf(
  { reconciliationId, merchantId }: Reconciliation,
  db: Database,
): Promise<ReconcileTotals> {
  const all: ReconcileTotals[] = []
  for await (const page of pages((page) => db.run(totals, { reconciliationId, merchantId, ...page })))
    all.push(...page)
  const counted = (name: 'paidHere' | 'paidThere' | 'reversed' | 'open' | 'settled') =>
    all.reduce((total, each) => total + each[name], 0)
  const added = (name: 'amountHere' | 'feesHere' | 'amountThere' | 'feesThere' | 'amountReversed') =>
    sum(all.map((each) => each[name]))
  return {
    paidHere: counted('paidHere'),
    amountHere: added('amountHere'),
    feesHere: added('feesHere'),
    paidThere: counted('paidThere'),
    amountThere: added('amountThere'),
    feesThere: added('feesThere'),
    reversed: counted('reversed'),
    amountReversed: added('amountReversed'),
    open: counted('open'),
    settled: counted('settled'),
  }
}

async function differingIn(
  { reconciliationId, merchantId }: Reconciliation,
  db: Database,
): Promise<Differing[]> {
  const all: Differing[] = []
  for await (const page of pages((page) => db.run(differing, { reconciliationId, merchantId, ...page }))) {
    for (const { last, ...each } of page) if (each.payoutId !== null) all.push(each)
  }
  return all.toSorted((a, b) => a.acceptedAt - b.acceptedAt)
}

async function besideStatement(
  { merchantId, accountId, periodFrom: from, periodTo: to }: Reconciliation,
  lines: readonly StatementLine[],
  db: Database,
) {
  const named = new Map<string, StatedPayout>()
  for (let first = 0; first < lines.length; first += PAGE) {
    const some = lines.slice(first, first + PAGE)
    const found = await db.run(namedBy, {
      merchantId,
      utrs: some.flatMap(({ utr }) => utr ?? []),
      orderNos: some.flatMap(({ mchOrderNo }) => mchOrderNo ?? []),
    })
    for (const payout of found) named.set(payout.payoutId, payout)
  }
  const { differences, missing } = compareStatement(lines, [...named.values()], { from, to })
  const which = { merchantId, accountId, from, to }
  for await (const page of pages((page) => db.run(paidInPeriod, { ...which, ...page })))
    differences.push(...missing(page.filter((each) => each.payoutId !== null)))
  const amount = sum(lines.map((line) => line.amount))
  return { lines: lines.length, amount, differences }
}

/** Whether the gateway answered about every payout, and nothing differs. */
export const agrees = ({ listed, asked, differing, balance, statement }: Report): boolean =>
  asked === listed &&
  differing.length === 0 &&
  balance.kind !== 'missing' &&
  (statement === null || statement.differences.length === 0)
