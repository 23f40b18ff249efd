import { timerAt } from '../../ledger/sql/columns.ts'
import { type Fragment, sql } from '../../platform/postgres/postgres.ts'

/** Payouts that nobody has moved or asked about since that was due, counted up to OVERDUE_COUNTED_UP_TO. */
export type Overdue = { merchantId: string; count: number; oldestSeconds: number; firstPayoutId: string }

export const OVERDUE_COUNTED_UP_TO = 1_000
const most = String(OVERDUE_COUNTED_UP_TO)

/** Those of a merchant m that have been due for longer than two minutes, by index; none while it is fenced. */
export const lateOf: Fragment = {
  fragment: `
    select count(*)::int as count, extract(epoch from now() - min(due))::float8 as oldest_seconds,
      (array_agg(payout_id order by due))[1] as first_payout_id
    from (
      (select due_at as due, payout_id from payouts p
       where p.merchant_id = m.merchant_id and due_at is not null and state in ('unknown', 'processing')
         and due_at < now() - interval '2 minutes' and deadline > now() - interval '2 minutes'
       order by due_at limit ${most})
      union all
      (select ${timerAt.fragment}, payout_id from payouts p
       where p.merchant_id = m.merchant_id and due_at is not null and ${timerAt.fragment} < now() - interval '2 minutes'
       order by ${timerAt.fragment} limit ${most})
    ) due
    where m.recovering_since is null`,
}

export const overdue = sql<object, Overdue>`
  select m.merchant_id, late.count, late.oldest_seconds, late.first_payout_id
  from merchants m cross join lateral (${lateOf}) late
  where late.count > 0
  order by m.merchant_id`
