import { sql } from '../../platform/postgres/postgres.ts'
import type { Instant } from '../../platform/running/clock.ts'

export type ServerState = {
  /** `180004` for 18.4. */
  version: number
  versionText: string
  standby: boolean
  /** Whether it refuses writes although it is no standby. */
  readOnly: boolean
  encoding: string
  /** The setting without which a commit can be lost in a crash: `on`, or something else. */
  fsync: string
}

export const serverState = sql<object, ServerState>`
  select current_setting('server_version_num')::int as version, current_setting('server_version') as version_text,
    pg_is_in_recovery() as standby, current_setting('default_transaction_read_only') = 'on' as read_only,
    current_setting('server_encoding') as encoding,
    current_setting('fsync') as fsync`

export const serverClock = sql<object, { shown: Instant }>`select clock_timestamp() as shown`

export type MissingRight = { on: string; privilege: string }

/** Rights that are missing, compared with src/ledger/tables/grants.ts. payoutd never needs rights on partitions. */
export const missingRights = sql<{ onlyRead: string[]; onlyAddedTo: string[] }, MissingRight>`
  select c.relname::text as on, lower(wanted.privilege) as privilege
  from pg_class c
  cross join unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE']) as wanted (privilege)
  where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    and not has_table_privilege(c.oid, wanted.privilege)
    and not (c.relname = any(${'onlyRead'}::text[]) and wanted.privilege <> 'SELECT')
    and not (c.relname = any(${'onlyAddedTo'}::text[]) and wanted.privilege in ('UPDATE', 'DELETE'))
  union all
  select 'keep_history', 'execute' where not has_function_privilege('keep_history(integer)', 'execute')
  order by 1, 2`

/** Whether this role could change or delete the record of what people did. */
export const canRewriteActs = sql<object, { can: boolean }>`
  select has_table_privilege('operator_acts', 'UPDATE') or has_table_privilege('operator_acts', 'DELETE')
    or pg_has_role(relowner, 'usage') as can from pg_class where oid = 'operator_acts'::regclass`
