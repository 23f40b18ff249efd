import type { Instant } from '../../domain/instant.ts'
import { sql } from '../../platform/postgres/postgres.ts'

/** Commands of one merchant that wait in the ledger, counted up to a bound, and when intake set the first of them aside. */
export type SetAside = { merchantId: string; count: number; since: Instant }

export const setAsideByMerchant = sql<{ countUpTo: number }, SetAside>`
  with recursive waiting as (
    (select merchant_id, at from waiting_commands order by merchant_id, topic, partition, position limit 1)
    union all
    select next.* from waiting
    cross join lateral (
      select w.merchant_id, w.at from waiting_commands w where w.merchant_id > waiting.merchant_id
      order by w.merchant_id, w.topic, w.partition, w.position limit 1
    ) next
  )
  select waiting.merchant_id, counted.count, waiting.at as since
  from waiting
  cross join lateral (
    select count(*)::int as count from (
      select from waiting_commands w where w.merchant_id = waiting.merchant_id limit ${'countUpTo'}
    ) bounded
  ) counted`
