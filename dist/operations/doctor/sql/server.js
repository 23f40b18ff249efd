import { sql } from "../../../platform/postgres.js";
export const serverState = sql `
  select current_setting('server_version_num')::int as version, current_setting('server_version') as version_text,
    pg_is_in_recovery() as standby, current_setting('server_encoding') as encoding,
    current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit`;
export const serverClock = sql `select clock_timestamp() as shown`;
/**
 * Rights that are missing: on our tables (those of partitions are never asked for), and what making the monthly
 * partitions of history takes (`keep_history`).
 */
export const missingRights = sql `
  select c.relname::text as on, lower(wanted.privilege) as privilege
  from pg_class c
  cross join unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE']) as wanted (privilege)
  where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    and c.relname <> 'migrations' and not has_table_privilege(c.oid, wanted.privilege)
  union all
  select c.relname::text, 'ownership' from pg_class c
  where c.oid = 'history'::regclass and not pg_has_role(c.relowner, 'usage')
  union all
  select 'schema ' || current_schema(), 'create' where not has_schema_privilege(current_schema(), 'create')
  order by 1, 2`;
export const hasMigrations = sql `select to_regclass('migrations') is not null as present`;
export const doneMigrations = sql `select name from migrations order by name`;
