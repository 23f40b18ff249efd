import { type Fragment, sql } from '../../platform/postgres/postgres.ts'

/** What keeps the database from removing row versions that have ended since. */
export type HeldSnapshot = {
  kind: 'session' | 'prepared transaction' | 'replication slot'
  /** The process id of a session; the name of anything else. */
  name: string
  role: string | null
  application: string | null
  /** Its age; null if the server does not report it, as for a connected standby. */
  seconds: number | null
  /** How many transactions ago. */
  transactions: number
}

/**
 * A snapshot holds back its own database, a transaction with an id all databases; the server itself knows that vacuum holds back
 * nothing. A standby's snapshot is in the row of its walsender, or in its slot.
 */
export const snapshotsHeld: Fragment = {
  fragment: `
    select kind, name, role, application, extract(epoch from now() - since)::float8 as seconds, transactions
    from (
      select 'session' as kind, a.pid::text as name, a.usename::text as role, a.application_name as application,
        a.xact_start as since, greatest(age(a.backend_xid), age(a.backend_xmin)) as transactions
      from pg_stat_activity a
      where a.pid <> pg_backend_pid() and a.leader_pid is null
        and (a.backend_xid is not null
          or a.backend_xmin is not null and coalesce(a.datname, current_database()) = current_database())
        and not exists (select from pg_stat_progress_vacuum v where v.pid = a.pid)
      union all
      select 'prepared transaction', p.gid, p.owner::text, null, p.prepared, age(p.transaction)
      from pg_prepared_xacts p
      union all
      select 'replication slot', s.slot_name::text, null, null, s.inactive_since, age(s.xmin)
      from pg_replication_slots s
      where s.xmin is not null
    ) held`,
}

/** The oldest first. */
export const heldSnapshots = sql<object, HeldSnapshot>`
  select * from (${snapshotsHeld}) held order by seconds desc nulls last, transactions desc`

/** Whether this role can see the ages of other users' sessions. */
export const seesEverySession = sql<object, { sees: boolean }>`
  select pg_has_role('pg_read_all_stats', 'usage') as sees`
