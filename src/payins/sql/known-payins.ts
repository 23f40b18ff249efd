import { type Fragment, sql } from '../../platform/postgres/postgres.ts'

const isKnown: Fragment = { fragment: `pay_order_id is not null and state in ('open', 'paid', 'failed')` }

/** Payins that this account itself confirmed to exist: the newest two, then the oldest. */
export const knownPayins = sql<{ merchantId: string; accountId: string }, { payinId: string }>`
  (select payin_id from payins
   where merchant_id = ${'merchantId'} and account_id = ${'accountId'} and ${isKnown} order by created_at desc limit 2)
  union all
  (select payin_id from payins
   where merchant_id = ${'merchantId'} and account_id = ${'accountId'} and ${isKnown} order by created_at limit 1)`
