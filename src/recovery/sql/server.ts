import { sql } from '../../platform/postgres.ts'

/** Which server the ledger was last seen on, and since when; no row: none was noted. */
export const serverSince = sql<object, { server: string }>`
  select concat_ws(' ', system_identifier, timeline, extract(epoch from since)) as server from ledger_server`
