import type { Instant } from '../../../domain/instant.ts'
import type { Fence } from '../../../ledger/sql/fence.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

export const fenceOf = sql<{ merchantId: string }, Fence>`
  select merchant_id, recovering_since as since, recovering_by as by, recovering_reason as reason,
    recovering_one_step as one_step, recovery_round as round
  from merchants where merchant_id = ${'merchantId'} and recovering_since is not null`

/** The merchants of the ledger but for these. */
export const merchantsBeside = sql<{ merchantIds: string[] }, { merchantId: string }>`
  select merchant_id from merchants where merchant_id <> all (${'merchantIds'}::text[]) order by 1`

/** A recovery, which goes on from when it was first called. */
export type BegunRecovery = Fence & { began: Instant }

/**
 * `settings`: of all accounts that are asked; where they are others than before, nobody asked by these, and a new round begins.
 * Null: nobody can ask.
 */
export const beginRecovery = sql<{ merchantId: string; settings: string | null }, BegunRecovery>`
  update merchants
  set recovery_began = coalesce(recovery_began, now()),
      recovery_round = recovery_round + case when recovery_settings <> ${'settings'} then 1 else 0 end,
      recovery_settings = coalesce(${'settings'}, recovery_settings)
  where merchant_id = ${'merchantId'} and recovering_since is not null
  returning merchant_id, recovering_since as since, recovering_by as by, recovering_reason as reason,
    recovering_one_step as one_step, recovery_round as round, recovery_began as began`

export const lockFence = sql<{ merchantId: string }>`
  select from merchants where merchant_id = ${'merchantId'} for update`

/** The balance that was known is that of another time, and sending begins with the canary. */
export const takeFenceDown = sql<{ merchantId: string }>`
  update merchants
  set recovering_since = null, recovering_by = null, recovering_reason = null, recovering_one_step = false,
      available = null, ramp = 0
  where merchant_id = ${'merchantId'}`

/** Whoever is new to the ledger after this may have been in what it lost: nobody asked about them. */
export const noteRestored = sql<{ before: string }>`
  update ledger_server set predecessor = ${'before'} where predecessor is null`

/** For how long a "not found" may still be early. */
export const graceLeft = sql<{ began: Instant; graceMs: number }, { ms: number }>`
  select greatest(0, ${'began'}::float8 + ${'graceMs'}::float8 - extract(epoch from now()) * 1000)::float8 as ms`

/**
 * What has shown since then that the ledger lacks something, of whatever merchant: they share one ledger, and so what it
 * lost. That of the merchant itself comes first.
 */
export const shownLoss = sql<{ merchantId: string; since: Instant }, { merchantId: string; detail: string }>`
  select m.merchant_id, shown.detail
  from merchants m
  cross join lateral (
    select detail from anomalies
    where anomalies.merchant_id = m.merchant_id
      and kind in ('never-sent', 'ledger-set-back', 'published-and-gone', 'end-published')
      and coalesce(last_at, at) >= to_timestamp(${'since'}::float8 / 1000)
    order by at limit 1
  ) shown
  order by m.merchant_id <> ${'merchantId'}, m.merchant_id
  limit 1`

/** A row: somebody has begun to recover the merchant, and nothing shows that anything of it was ever sent. */
export const isUnused = sql<{ merchantId: string }>`
  select from merchants m
  where merchant_id = ${'merchantId'} and recovery_began is not null
    and not exists (select from attempts a where a.merchant_id = m.merchant_id)
    and not exists (
      select from anomalies a where a.merchant_id = m.merchant_id and kind in ('never-sent', 'published-and-gone')
    )`

/** A row: whoever raised the fence, somebody has begun to recover the merchant. */
export const hasBegun = sql<{ merchantId: string }>`
  select from merchants m
  where merchant_id = ${'merchantId'}
    and (recovery_began is not null
      or exists (select from recovered_payouts r where r.merchant_id = m.merchant_id))`
