import { type Fragment, sql } from '../../../platform/postgres/postgres.ts'

/** For a row `k` of payouts: its account reported an order of it. */
const isKnown: Fragment = {
  fragment: `k.agentpay_order_id is not null and k.state in ('processing', 'paid', 'failed')`,
}

/**
 * By the time when they were first sent, beside that of a payout. All attempts of a payout have one order number, and it may have
 * left as long as the lease of one lasted; an older order is known to be as old as that only if it was sent once.
 */
export type OrdersBeside = { older: string | null; newer: string | null; newest: string | null }

/** `isFirst`: the account has never reported an order of another payout, also none that it has forgotten since. */
type PayoutsBeside = OrdersBeside & { isFirst: boolean }

/** Orders that an account itself has reported, from when a payout was first sent or before, from after it was last sent, and the newest. */
export const ordersBeside = sql<{ merchantId: string; payoutId: string; accountId: string }, PayoutsBeside>`
  select
    (select k.order_no from payouts k
     where k.merchant_id = p.merchant_id and k.account_id = ${'accountId'} and ${isKnown}
       and k.attempt = 1 and k.sent_at <= coalesce(p.sent_at, p.accepted_at) and k.payout_id <> p.payout_id
     order by k.sent_at desc limit 1) as older,
    (select k.order_no from payouts k
     where k.merchant_id = p.merchant_id and k.account_id = ${'accountId'} and ${isKnown}
       and k.sent_at > (select max(a.lease_until) from attempts a
                        where a.merchant_id = p.merchant_id and a.payout_id = p.payout_id)
     order by k.sent_at limit 1) as newer,
    (select k.order_no from payouts k
     where k.merchant_id = p.merchant_id and k.account_id = ${'accountId'} and ${isKnown}
       and k.sent_at is not null and k.payout_id <> p.payout_id
     order by k.sent_at desc limit 1) as newest,
    not exists (
      select from payouts k where k.merchant_id = p.merchant_id and k.account_id = ${'accountId'}
        and k.agentpay_order_id is not null and k.payout_id <> p.payout_id) as is_first
  from payouts p
  where p.merchant_id = ${'merchantId'} and p.payout_id = ${'payoutId'}`

/** The newest orders that an account itself has reported. */
export const newestOrders = sql<{ merchantId: string; accountId: string }, { orderNo: string }>`
  select k.order_no from payouts k
  where k.merchant_id = ${'merchantId'} and k.account_id = ${'accountId'} and ${isKnown} and k.sent_at is not null
  order by k.sent_at desc limit 2`
