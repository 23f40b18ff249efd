import { type Paise, paise, sum, ZERO } from '../../domain/money.ts'
import { pages } from '../../platform/postgres/pages.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import {
  paidBetween,
  type Reconciliation,
  type Returned,
  returnedBetween,
  type Snapshot,
  snapshotNear,
} from './sql/reconciliations.ts'

/** How the balance moved between two reports of it, compared with what was paid and what came back. */
export type BalanceChange =
  | { kind: 'unknown' }
  /** The gateway did not report the balance when the run began. */
  | { kind: 'untold' }
  | {
      /**
       * `explained`: there is no gap. `in-flight`: it is within the allowance. `missing`: `rest` more left than that. `more`:
       * `rest` came in besides, such as a top-up or payins.
       */
      kind: 'explained' | 'in-flight' | 'missing' | 'more'
      from: Snapshot
      to: Snapshot
      /** What the payouts that ended between the two reports cost, fees included. */
      paid: Paise
      returned: Returned
      /** How much more left than `paid` less what came back; negative: less. */
      gap: Paise
      /**
       * What may explain the gap: what was in flight or in review at the end, or had just failed, and what may have come back before the beginning or
       * after the end; for a negative gap what was in flight or in review at the beginning.
       */
      allowance: Paise
      /** The part of the gap beyond the allowance; never negative. */
      rest: Paise
    }

const NOTHING_RETURNED: Returned = { reversals: 0, amount: ZERO, early: ZERO, late: ZERO }

/**
 * How the balance of a run's account moved over its period: from the snapshot nearest to its beginning to the one nearest to its
 * end. `unknown` if these are the same, or there is none.
 */
export async function balanceChangeOver(
  { merchantId, accountId, periodFrom, periodTo, balance }: Reconciliation,
  db: Database,
): Promise<BalanceChange> {
  if (balance === null) return { kind: 'untold' }
  const account = { merchantId, accountId }
  const [from] = await db.run(snapshotNear, { ...account, moment: periodFrom })
  const [to] = await db.run(snapshotNear, { ...account, moment: periodTo })
  if (!from || !to || from.at >= to.at) return { kind: 'unknown' }
  let paid = ZERO
  let [inFlightFrom, inFlightTo] = [from.inFlight, to.inFlight]
  const period = { ...account, from: from.at, to: to.at, fromTold: from.balanceAt, toTold: to.balanceAt }
  for await (const page of pages((page) => db.run(paidBetween, { ...period, ...page }))) {
    paid = sum([paid, ...page.map((each) => each.paid)])
    inFlightFrom = sum([inFlightFrom, ...page.map(({ endedFrom }) => endedFrom)])
    inFlightTo = sum([inFlightTo, ...page.map(({ endedTo }) => endedTo)])
  }
  const returned = { ...NOTHING_RETURNED }
  for await (const page of pages((page) => db.run(returnedBetween, { ...period, ...page }))) {
    for (const { reversals, amount, early, late } of page) {
      returned.reversals += reversals
      returned.amount = sum([returned.amount, amount])
      returned.early = sum([returned.early, early])
      returned.late = sum([returned.late, late])
    }
  }
  return explain({ ...from, inFlight: inFlightFrom }, { ...to, inFlight: inFlightTo }, paid, returned)
}

/**
 * Whether the payouts and the reversals explain how the balance moved. A payout in flight at either end may or may not be deducted
 * from that balance, and money may have come back before payoutd learned of it or soon after, so this allows for all of these.
 * Money that came in can hide money that is missing.
 */
export function explain(
  from: Snapshot,
  to: Snapshot,
  paid: Paise,
  returned: Returned = NOTHING_RETURNED,
): BalanceChange {
  const gap = paise(from.balance - to.balance - paid + returned.amount)
  const allowance = gap < 0n ? from.inFlight : sum([to.inFlight, returned.early, returned.late])
  const rest = paise((gap < 0n ? -gap : gap) - allowance)
  const change = { from, to, paid, returned, gap, allowance }
  if (gap === 0n) return { kind: 'explained', ...change, rest: ZERO }
  if (rest <= 0n) return { kind: 'in-flight', ...change, rest: ZERO }
  return { kind: gap > 0n ? 'missing' : 'more', ...change, rest }
}
