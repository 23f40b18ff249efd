import type { Instant } from '../../../domain/instant.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

/** Which server the ledger was last seen on, and since when; no row: none was noted. */
export const serverSince = sql<object, { server: string }>`
  select concat_ws(' ', system_identifier, timeline, extract(epoch from since)) as server from ledger_server`

/** Once in a second, as a recovery may find the same of many payouts. */
export const noteLoss = sql<object>`
  update ledger_server set loss_found = now()
  where loss_found is null or loss_found < now() - interval '1 second'`

/** A row: a recovery of whatever merchant has found since then that the ledger lacked something. */
export const lossFound = sql<{ since: Instant }>`
  select from ledger_server where loss_found >= to_timestamp(${'since'}::float8 / 1000) - interval '1 second'`

/** A row: this is why merchants who are new to the ledger are fenced, as another one published before it, or was recovered. */
export const isOfNewcomers = sql<{ reason: string }>`
  select from ledger_server where predecessor = ${'reason'}`
