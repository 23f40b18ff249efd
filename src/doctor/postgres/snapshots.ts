import { formatAge } from '../../domain/times.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { type HeldSnapshot, heldSnapshots, seesEverySession } from '../../queries/sql/snapshots.ts'
import { type Check, type Finding, good, warning } from '../examine.ts'

const OLD_SECONDS = 600
/** Where the server does not tell since when: dispatch makes as many in some minutes at full speed. */
const MANY_TRANSACTIONS = 100_000

/** Whether somebody keeps what has ended from being cleared out of the indexes of what waits. */
export const snapshotChecks = (db: Database): Check[] => [
  {
    name: 'snapshots',
    needs: ['database'],
    run: async () =>
      judgeSnapshots(await db.run(heldSnapshots, {}), (await db.run(seesEverySession, {}))[0]?.sees ?? false),
  },
]

export function judgeSnapshots(held: readonly HeldSnapshot[], seesEvery: boolean): Finding {
  const old = held.filter(isOld)
  if (old.length > 0) {
    return warning(
      `${old.map(inWords).join('; ')}: as long as a snapshot of the database is kept, what was sent stays in the indexes ` +
        'of what waits, and dispatch of every merchant becomes slower with each payout',
      'let it end, or end it: a session by pg_terminate_backend, a prepared transaction by rollback prepared, the slot of a ' +
        'standby that is gone by pg_drop_replication_slot; a dump of a large database belongs on a standby without ' +
        'hot_standby_feedback',
    )
  }
  if (seesEvery) return good('nobody keeps an old snapshot of the database')
  return good(
    "payoutd's database user sees no old snapshot, and not since when other users keep theirs: grant pg_read_all_stats to it, and it does",
  )
}

const isOld = ({ seconds, transactions }: HeldSnapshot): boolean =>
  seconds === null ? transactions >= MANY_TRANSACTIONS : seconds >= OLD_SECONDS

function inWords({ kind, name, role, application, seconds, transactions }: HeldSnapshot): string {
  const whose = [role && `user ${role}`, application].filter(Boolean).join(', ')
  const since = seconds === null ? `${transactions} transactions` : formatAge(seconds * 1_000)
  return `${kind} ${name}${whose && ` (${whose})`} for ${since}`
}
