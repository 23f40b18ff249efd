import { sql } from '../../platform/postgres/postgres.ts'

/** Until the transaction ends nobody else can decide with this UTR, about any payout. */
export const lockUtr = sql<{ utr: string }>`
  select pg_advisory_xact_lock(hashtextextended('payout with UTR ' || upper(${'utr'}::text), 0))`
