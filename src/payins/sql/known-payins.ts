import { type Fragment, sql } from '../../platform/postgres/postgres.ts'
import type { OrdersBeside } from '../../stages/outcomes/sql/known-orders.ts'

/** For a row `k` of payins: its account confirmed that it exists. */
const isKnown: Fragment = { fragment: `k.pay_order_id is not null and k.state in ('open', 'paid', 'failed')` }

/** Payins that an account itself confirmed to exist, from before a payin was created, from after its creation left, and the newest. */
export const payinsBeside = sql<{ merchantId: string; payinId: string; accountId: string }, OrdersBeside>`
  select
    (select k.payin_id from payins k
     where k.merchant_id = p.merchant_id and k.account_id = ${'accountId'} and ${isKnown}
       and k.created_at < p.created_at
     order by k.created_at desc limit 1) as older,
    (select k.payin_id from payins k
     where k.merchant_id = p.merchant_id and k.account_id = ${'accountId'} and ${isKnown}
       and k.created_at > coalesce(p.unknown_since, p.created_at)
     order by k.created_at limit 1) as newer,
    (select k.payin_id from payins k
     where k.merchant_id = p.merchant_id and k.account_id = ${'accountId'} and ${isKnown}
       and k.payin_id <> p.payin_id
     order by k.created_at desc limit 1) as newest
  from payins p
  where p.merchant_id = ${'merchantId'} and p.payin_id = ${'payinId'}`
