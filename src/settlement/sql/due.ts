import { payoutColumns } from '../../ledger/sql/columns.ts'
import type { Payout } from '../../payout/payout.ts'
import { type Fragment, sql } from '../../platform/postgres.ts'

/** When time alone moves an open payout; as in the index payouts_timers. */
const timerAt: Fragment = {
  fragment: `case when state in ('unknown', 'processing') then deadline else due_at end`,
}

/**
 * Payouts that time alone moves now, so many of each merchant at most, the longest due first. Those that another
 * process holds are left to it. The merchants are found by walking from one to the next along the index.
 */
export const lockTimers = sql<{ ofEach: number }, Payout>`
  with recursive open as (
    (select merchant_id from payouts where due_at is not null order by merchant_id limit 1)
    union all
    select (
      select payouts.merchant_id from payouts
      where payouts.due_at is not null and payouts.merchant_id > open.merchant_id
      order by payouts.merchant_id limit 1
    ) from open where open.merchant_id is not null
  )
  select ${payoutColumns}
  from open
  cross join lateral (
    select * from payouts
    where payouts.merchant_id = open.merchant_id and due_at is not null and ${timerAt} <= now()
    order by ${timerAt}
    limit ${'ofEach'}
    for update skip locked
  ) p`

/**
 * Payouts that the gateway is to be asked about now: of each merchant named at most as many as its limit, the longest
 * due first. Those that another process holds are left to it.
 */
export const lockToAsk = sql<{ merchantIds: string[]; limits: number[] }, Payout>`
  select ${payoutColumns}
  from unnest(${'merchantIds'}::text[], ${'limits'}::int[]) as asked (merchant_id, most)
  cross join lateral (
    select * from payouts
    where payouts.merchant_id = asked.merchant_id and due_at is not null and state in ('unknown', 'processing')
      and due_at <= now() and deadline > now()
    order by due_at
    limit asked.most
    for update skip locked
  ) p`
