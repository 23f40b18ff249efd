import type { Instant } from '../../../domain/instant.ts'
import { type Fence, fenceColumns } from '../../../ledger/sql/fence.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

export const fenceOf = sql<{ merchantId: string }, Fence>`
  select ${fenceColumns} from merchants where merchant_id = ${'merchantId'} and recovering_since is not null`

/** The merchants of the ledger except these. */
export const merchantsBeside = sql<{ merchantIds: string[] }, { merchantId: string }>`
  select merchant_id from merchants where merchant_id <> all (${'merchantIds'}::text[]) order by 1`

/** A recovery, which continues from its first call. */
export type BegunRecovery = Fence & { began: Instant }

/**
 * `settings`: of all accounts that are asked; if they differ from before, nobody has asked by these, and a new round begins.
 * Null: nobody can ask.
 */
export const beginRecovery = sql<{ merchantId: string; settings: string | null }, BegunRecovery>`
  update merchants
  set recovery_began = coalesce(recovery_began, now()),
      recovery_round = recovery_round + case when recovery_settings <> ${'settings'} then 1 else 0 end,
      recovery_settings = coalesce(${'settings'}, recovery_settings)
  where merchant_id = ${'merchantId'} and recovering_since is not null
  returning ${fenceColumns}, recovery_began as began`

export const lockFence = sql<{ merchantId: string }>`
  select from merchants where merchant_id = ${'merchantId'} for update`

/** The known balance is out of date, and sending begins with the canary. */
export const takeFenceDown = sql<{ merchantId: string }>`
  update merchants
  set recovering_since = null, recovering_by = null, recovering_reason = null, recovering_one_step = false,
      available = null, warm_up = 0
  where merchant_id = ${'merchantId'}`

/** A merchant who is new to the ledger after this may have been in what it lost: nobody asked about it. */
export const noteRestored = sql<{ before: string }>`
  update ledger_server set predecessor = ${'before'} where predecessor is null`

/** How long a "not found" may still be premature. */
export const graceLeft = sql<{ began: Instant; graceMs: number }, { ms: number }>`
  select greatest(0, ${'began'}::float8 + ${'graceMs'}::float8 - extract(epoch from now()) * 1000)::float8 as ms`

/**
 * What has shown since then that the ledger lacks something, of any merchant: they share one ledger, and so what it lost.
 * Evidence of the merchant itself comes first.
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

/** A row: somebody has begun to recover the merchant, no matter who raised the fence. */
export const hasBegun = sql<{ merchantId: string }>`
  select from merchants m
  where merchant_id = ${'merchantId'}
    and (recovery_began is not null
      or exists (select from recovered_payouts r where r.merchant_id = m.merchant_id))`
