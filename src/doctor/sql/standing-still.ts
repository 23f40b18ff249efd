import { sql } from '../../platform/postgres/postgres.ts'
import { lackOfBalance } from '../../queries/sql/shortages.ts'

/** A merchant whose payouts could be sent. What dispatch does changes `claimedTotal` or `nextPayoutId`. */
export type Sendable = { merchantId: string; claimedTotal: bigint; nextPayoutId: string; waiting: number }

/** Merchants with payouts to send of which none is on its way, that nobody has stopped, and whose balance covers the next one. */
export const sendable = sql<{ countUpTo: number }, Sendable>`
  select m.merchant_id, m.claimed_total, next.payout_id as next_payout_id, ready.count as waiting
  from merchants m
  cross join lateral (
    select p.payout_id from payouts p
    where p.merchant_id = m.merchant_id and p.ready and p.cancel_request is null and not p.order_shown
      and p.deadline > now()
    order by p.priority desc, p.seq
    limit 1
  ) next
  cross join lateral (
    select count(*)::int as count from (
      select from payouts where payouts.merchant_id = m.merchant_id and payouts.ready limit ${'countUpTo'}
    ) counted
  ) ready
  where m.paused_at is null and m.recovering_since is null and coalesce(m.circuit_open_until <= now(), true)
    and not exists (
      select from payouts p
      where p.merchant_id = m.merchant_id and p.in_doubt and p.state = 'submitting' and p.due_at > now()
    )
    and not exists (select from (${lackOfBalance}) lack where lack.missing > 0)
  order by m.merchant_id`
