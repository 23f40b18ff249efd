import type { Instant } from '../../../domain/instant.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

/** The server on which payoutd last saw the ledger, and since when; no row: none was recorded. */
export const serverSince = sql<object, { server: string }>`
  select concat_ws(' ', system_identifier, timeline, extract(epoch from since)) as server from ledger_server`

/** At most once per second, because a recovery may find the same for many payouts. */
export const noteLossFound = sql<object>`
  update ledger_server set loss_found = now()
  where loss_found is null or loss_found < now() - interval '1 second'`

/** A row: a recovery of any merchant has found since then that the ledger lacked something. */
export const lossFound = sql<{ since: Instant }>`
  select from ledger_server where loss_found >= to_timestamp(${'since'}::float8 / 1000) - interval '1 second'`

/**
 * A row: merchants who are new to the ledger are fenced for this reason, because another ledger published before it, or it was
 * recovered.
 */
export const isOfNewcomers = sql<{ reason: string }>`
  select from ledger_server where predecessor = ${'reason'}`
