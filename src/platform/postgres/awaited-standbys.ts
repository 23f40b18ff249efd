import { sql } from './postgres.ts'

/**
 * The standbys that a commit has waited for longer than any should, as `synchronous_standby_names` names them; null: no commit
 * does. PostgreSQL shows a role the waits of its own sessions.
 */
export const awaitedStandbys = sql<object, { names: string | null }>`
  select (
    select current_setting('synchronous_standby_names') from pg_stat_activity
    where wait_event = 'SyncRep' and query_start < clock_timestamp() - interval '5 seconds'
    limit 1
  ) as names`
