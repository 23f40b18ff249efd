import type { Fence } from '../../ledger/sql/fence.ts'
import type { Instant } from '../../payout/instant.ts'
import { sql } from '../../platform/postgres.ts'

export const fenceOf = sql<{ merchantId: string }, Fence>`
  select merchant_id, recovering_since as since, recovering_by as by, recovering_reason as reason
  from merchants where merchant_id = ${'merchantId'} and recovering_since is not null`

export const lockFence = sql<{ merchantId: string }>`
  select from merchants where merchant_id = ${'merchantId'} for update`

/** The balance that was known is that of another time, and sending begins with the canary. */
export const takeFenceDown = sql<{ merchantId: string }>`
  update merchants
  set recovering_since = null, recovering_by = null, recovering_reason = null, available = null, ramp = 0
  where merchant_id = ${'merchantId'}`

/** For how long a "not found" may still be early. */
export const graceLeft = sql<{ since: Instant; graceMs: number }, { ms: number }>`
  select greatest(0, ${'since'}::float8 + ${'graceMs'}::float8 - extract(epoch from now()) * 1000)::float8 as ms`

/** What showed since a fence was raised that the ledger lacks something: evidence, or a recovery that has begun. */
export const heardOfLoss = sql<{ merchantId: string; since: Instant }, { detail: string }>`
  select detail from (
    (select detail from anomalies
     where merchant_id = ${'merchantId'} and kind = 'never-sent' and coalesce(last_at, at) >= to_timestamp(${'since'}::float8 / 1000)
     order by at limit 1)
    union all
    (select 'payoutd recover has begun to ask the gateway about its open payouts' from recovered_payouts
     where merchant_id = ${'merchantId'} limit 1)
  ) heard
  limit 1`
