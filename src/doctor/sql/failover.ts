import { sql } from '../../platform/postgres/postgres.ts'

/** What a commit waits for besides the server's own disk; `names` is empty if it waits for no standby. */
export type StandbySettings = { names: string; synchronousCommit: string }

export const standbySettings = sql<object, StandbySettings>`
  select current_setting('synchronous_standby_names') as names,
    current_setting('synchronous_commit') as synchronous_commit`
