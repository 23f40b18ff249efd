import { type Fragment, sql } from '../../../platform/postgres/postgres.ts'

/** For a row `k` of payouts: its account reported an order of it. */
const isKnown: Fragment = {
  fragment: `k.agentpay_order_id is not null and k.state in ('processing', 'paid', 'failed')`,
}

/**
 * The account that is asked, and the orders that its gateway confused with others lately. It may do so always, and while payoutd asks
 * about one, no order there counts as absent.
 */
export const askedAccount = sql<{ accountId: string; baseUrl: string }>`(
  select ${'accountId'}::text as account_id,
    coalesce((select order_nos from mixed_answers where base_url = ${'baseUrl'}), '{}') as confused
) asked`

/** The nearest known order of the account `asked`: one that is not confused, if there is any. */
export const nearestIn =
  (table: string, numbers: string, known: Fragment) =>
  (which: string, order: string): Fragment => {
    const find = (also: string) => `(
      select ${numbers} from ${table} k
      where k.merchant_id = p.merchant_id and k.account_id = asked.account_id and ${known.fragment} and ${which} ${also}
      order by ${order} limit 1)`
    return { fragment: `coalesce(${find(`and ${numbers} <> all (asked.confused)`)}, ${find('')})` }
  }

/**
 * By the time when they were first sent, beside that of a payout. All attempts of a payout have one order number, and it may have
 * left as long as the lease of one lasted; an older order is known to be as old as that only if it was sent once.
 */
export type OrdersBeside = { older: string | null; newer: string | null; newest: string | null }

/** `isFirst`: the account has never reported an order of another payout, also none that it has forgotten since. */
type PayoutsBeside = OrdersBeside & { isFirst: boolean }

const nearest = nearestIn('payouts', 'k.order_no', isKnown)
const older = nearest(
  'k.attempt = 1 and k.sent_at <= coalesce(p.sent_at, p.accepted_at) and k.payout_id <> p.payout_id',
  'k.sent_at desc',
)
const newer = nearest(
  `k.sent_at > (select max(a.lease_until) from attempts a
                where a.merchant_id = p.merchant_id and a.payout_id = p.payout_id)`,
  'k.sent_at',
)
const newest = nearest('k.sent_at is not null and k.payout_id <> p.payout_id', 'k.sent_at desc')

/** Orders that an account itself has reported, from when a payout was first sent or before, from after it was last sent, and the newest. */
export const ordersBeside = sql<
  { merchantId: string; payoutId: string; accountId: string; baseUrl: string },
  PayoutsBeside
>`
  select ${older} as older, ${newer} as newer, ${newest} as newest,
    not exists (
      select from payouts k where k.merchant_id = p.merchant_id and k.account_id = asked.account_id
        and k.agentpay_order_id is not null and k.payout_id <> p.payout_id) as is_first
  from payouts p, ${askedAccount}
  where p.merchant_id = ${'merchantId'} and p.payout_id = ${'payoutId'}`

/** The newest orders that an account itself has reported. */
export const newestOrders = sql<{ merchantId: string; accountId: string }, { orderNo: string }>`
  select k.order_no from payouts k
  where k.merchant_id = ${'merchantId'} and k.account_id = ${'accountId'} and ${isKnown} and k.sent_at is not null
  order by k.sent_at desc limit 2`
