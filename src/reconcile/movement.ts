import { type Paise, paise } from '../payout/money.ts'
import type { Database } from '../platform/postgres.ts'
import { paidBetween, type Reconciliation, type Snapshot, snapshotNear } from './sql/reconciliations.ts'

/** How the balance moved between two moments at which it was told, beside what was paid. */
export type Movement =
  | { kind: 'unknown' }
  | {
      /** `missing`: more left than payouts explain, by `rest`. `more`: more came in than left, such as a top-up or payins. */
      kind: 'explained' | 'missing' | 'more'
      from: Snapshot
      to: Snapshot
      /** What payouts that ended between explain, fees included. */
      paid: Paise
      /** What they leave unexplained; never negative. */
      rest: Paise
    }

/**
 * How the balance moved over a run's period: from the snapshot nearest to its beginning to the one nearest to its end.
 * `unknown` where these are the same, or there is none.
 */
export async function movementOver(
  { merchantId, periodFrom, periodTo }: Reconciliation,
  db: Database,
): Promise<Movement> {
  const [from] = await db.run(snapshotNear, { merchantId, moment: periodFrom })
  const [to] = await db.run(snapshotNear, { merchantId, moment: periodTo })
  if (!from || !to || from.at >= to.at) return { kind: 'unknown' }
  const [row] = await db.run(paidBetween, { merchantId, from: from.at, to: to.at })
  return explain(from, to, row?.paid ?? paise(0))
}

/**
 * Whether what was paid explains how the balance moved. What was in flight at either end may stand on one side of the
 * balance or on the other, so it is allowed for. Money that came in can hide money that is missing.
 */
export function explain(from: Snapshot, to: Snapshot, paid: Paise): Movement {
  const left = from.balance - to.balance
  const missing = left - paid - to.inFlight
  const more = paid - left - from.inFlight
  const told = { from, to, paid }
  if (missing > 0n) return { kind: 'missing', ...told, rest: paise(missing) }
  if (more > 0n) return { kind: 'more', ...told, rest: paise(more) }
  return { kind: 'explained', ...told, rest: paise(0) }
}
