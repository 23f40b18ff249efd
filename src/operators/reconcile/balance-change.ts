import { type Paise, paise, sum, ZERO } from '../../domain/money.ts'
import { pages } from '../../platform/postgres/pages.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { paidBetween, type Reconciliation, type Snapshot, snapshotNear } from './sql/reconciliations.ts'

/** How the balance moved between two moments at which it was told, beside what was paid. */
export type BalanceChange =
  | { kind: 'unknown' }
  /** The gateway did not tell the balance when the run began. */
  | { kind: 'untold' }
  | {
      /**
       * `explained`: there is no gap. `in-flight`: it is within the allowance. `missing`: more left than that, by
       * `rest`. `more`: `rest` came in besides, such as a top-up or payins.
       */
      kind: 'explained' | 'in-flight' | 'missing' | 'more'
      from: Snapshot
      to: Snapshot
      /** What payouts that ended between took, fees included. */
      paid: Paise
      /** By how much more left than that; negative: less. */
      gap: Paise
      /** What was in flight or in review where it may account for the gap: at the end, for a negative one at the beginning. */
      allowance: Paise
      /** What of the gap is beyond the allowance; never negative. */
      rest: Paise
    }

/**
 * How the balance of a run's account moved over its period: from the snapshot nearest to its beginning to the one nearest to its
 * end. `unknown` where these are the same, or there is none.
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
  const period = { ...account, from: from.at, to: to.at, fromTold: from.toldAt, toTold: to.toldAt }
  for await (const page of pages((page) => db.run(paidBetween, { ...period, ...page }))) {
    paid = sum([paid, ...page.map((each) => each.paid)])
    inFlightFrom = sum([inFlightFrom, ...page.map(({ endedFrom }) => endedFrom)])
    inFlightTo = sum([inFlightTo, ...page.map(({ endedTo }) => endedTo)])
  }
  return explain({ ...from, inFlight: inFlightFrom }, { ...to, inFlight: inFlightTo }, paid)
}

/**
 * Whether what was paid explains how the balance moved. What was in flight at either end may stand on one side of the
 * balance or on the other, so it is allowed for. Money that came in can hide money that is missing.
 */
export function explain(from: Snapshot, to: Snapshot, paid: Paise): BalanceChange {
  const gap = paise(from.balance - to.balance - paid)
  const allowance = gap < 0n ? from.inFlight : to.inFlight
  const rest = paise((gap < 0n ? -gap : gap) - allowance)
  const told = { from, to, paid, gap, allowance }
  if (gap === 0n) return { kind: 'explained', ...told, rest: ZERO }
  if (rest <= 0n) return { kind: 'in-flight', ...told, rest: ZERO }
  return { kind: gap > 0n ? 'missing' : 'more', ...told, rest }
}
