import { type Fragment, sql } from '../../platform/postgres/postgres.ts'
import { askedAccount, nearestIn, type OrdersBeside } from '../../stages/outcomes/sql/known-orders.ts'

/** For a row `k` of payins: its account confirmed that it exists. */
const isKnown: Fragment = { fragment: `k.pay_order_id is not null and k.state in ('open', 'paid', 'failed')` }

const nearest = nearestIn('payins', 'k.payin_id', isKnown)
const older = nearest('k.created_at < p.created_at', 'k.created_at desc')
const newer = nearest('k.created_at > coalesce(p.unknown_since, p.created_at)', 'k.created_at')
const newest = nearest('k.payin_id <> p.payin_id', 'k.created_at desc')

/** Payins that an account itself confirmed to exist, from before a payin was created, from after its creation left, and the newest. */
export const payinsBeside = sql<
  { merchantId: string; payinId: string; accountId: string; baseUrl: string },
  OrdersBeside
>`
  select ${older} as older, ${newer} as newer, ${newest} as newest
  from payins p, ${askedAccount}
  where p.merchant_id = ${'merchantId'} and p.payin_id = ${'payinId'}`
