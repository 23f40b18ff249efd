import { awaitedStandbys } from '../../platform/postgres/awaited-standbys.ts'
import { sql } from '../../platform/postgres/postgres.ts'

/**
 * What a commit waits for besides the server's own disk; `names` is empty if it waits for no standby. `isAwaited`: one has waited
 * for longer than any should. `connected`: the standbys of any kind.
 */
export type StandbySettings = {
  names: string
  synchronousCommit: string
  isAwaited: boolean
  connected: number
}

export const standbySettings = sql<object, StandbySettings>`
  select current_setting('synchronous_standby_names') as names,
    current_setting('synchronous_commit') as synchronous_commit,
    (${awaitedStandbys}) is not null as is_awaited,
    (select count(*)::int from pg_stat_replication) as connected`
