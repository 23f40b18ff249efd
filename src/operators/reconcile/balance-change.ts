import { type Paise, paise, sum, ZERO } from '../../domain/money.ts'
import { pages } from '../../platform/postgres/pages.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { paidBetween, type Reconciliation, type Snapshot, snapshotNear } from './sql/reconciliations.ts'

/** How the balance moved between two reports of it, compared with what was paid. */
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
      /** How much more left than `paid`; negative: less. */
      gap: Paise
      /** What was in flight or in review and may explain the gap: at the end, or for a negative gap at the beginning. */
      allowance: Paise
      /** The part of the gap beyond the allowance; never negative. */
      rest: Paise
    }

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
  return explain({ ...from, inFlight: inFlightFrom }, { ...to, inFlight: inFlightTo }, paid)
}

/**
 * Whether the payouts explain how the balance moved. A payout in flight at either end may or may not be deducted from that
 * balance, so this allows for it. Money that came in can hide money that is missing.
 */
export function explain(from: Snapshot, to: Snapshot, paid: Paise): BalanceChange {
  const gap = paise(from.balance - to.balance - paid)
  const allowance = gap < 0n ? from.inFlight : to.inFlight
  const rest = paise((gap < 0n ? -gap : gap) - allowance)
  const change = { from, to, paid, gap, allowance }
  if (gap === 0n) return { kind: 'explained', ...change, rest: ZERO }
  if (rest <= 0n) return { kind: 'in-flight', ...change, rest: ZERO }
  return { kind: gap > 0n ? 'missing' : 'more', ...change, rest }
}
