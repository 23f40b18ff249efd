import { sql } from '../../../platform/postgres/postgres.ts'

/** Dispatch reads the lag with every claim of the merchant, and slows down. */
export const reportLag = sql<{ processId: string; merchantId: string; lagMs: number }>`
  insert into merchant_callback_lag (merchant_id, process_id, lag_ms, seen_at)
  values (${'merchantId'}, ${'processId'}, ${'lagMs'}, now())
  on conflict (merchant_id, process_id) do update set lag_ms = excluded.lag_ms, seen_at = excluded.seen_at`

/** Deletes some rows of processes that are long gone, except rows that another transaction has locked. */
export const deleteOldLag = sql<{ limit: number }>`
  delete from merchant_callback_lag where ctid = any (array(
    select ctid from merchant_callback_lag where seen_at < now() - interval '1 hour'
    limit ${'limit'} for update skip locked
  ))`
