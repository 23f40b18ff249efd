import { formatAge } from '../../domain/times.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { type HeldSnapshot, heldSnapshots, seesEverySession } from '../../queries/sql/snapshots.ts'
import { type Check, type Finding, good, warning } from '../examine.ts'

const OLD_SECONDS = 600
/** For a snapshot whose age the server does not report: dispatch makes as many in some minutes at full speed. */
const MANY_TRANSACTIONS = 100_000

/** Whether somebody keeps a snapshot that prevents the removal of ended rows from the indexes of what waits. */
export const snapshotChecks = (db: Database): Check[] => [
  {
    name: 'snapshots',
    needs: ['database'],
    run: async () =>
      checkSnapshots(await db.run(heldSnapshots, {}), (await db.run(seesEverySession, {}))[0]?.sees ?? false),
  },
]

export function checkSnapshots(held: readonly HeldSnapshot[], seesEvery: boolean): Finding {
  const old = held.filter(isOld)
  if (old.length > 0) {
    return warning(
      `old snapshots of the database: ${old.map(inWords).join('; ')}. PostgreSQL cannot clean up the indexes of waiting payouts ` +
        'meanwhile, so sending becomes slower for every merchant with each payout',
      'let it end, or end it: a session with pg_terminate_backend, a prepared transaction with rollback prepared, the slot of a ' +
        'standby that is gone with pg_drop_replication_slot. Dump a large database on a standby without ' +
        'hot_standby_feedback',
    )
  }
  if (seesEvery) return good('the database has no old snapshot')
  return good(
    "payoutd's database user sees no old snapshot, but cannot see those of other users: grant it pg_read_all_stats",
  )
}

const isOld = ({ seconds, transactions }: HeldSnapshot): boolean =>
  seconds === null ? transactions >= MANY_TRANSACTIONS : seconds >= OLD_SECONDS

function inWords({ kind, name, role, application, seconds, transactions }: HeldSnapshot): string {
  const whose = [role && `user ${role}`, application].filter(Boolean).join(', ')
  const since = seconds === null ? `${transactions} transactions` : formatAge(seconds * 1_000)
  return `${kind} ${name}${whose && ` (${whose})`} for ${since}`
}
