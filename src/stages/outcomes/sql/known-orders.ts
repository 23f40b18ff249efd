import { type Fragment, sql } from '../../../platform/postgres/postgres.ts'

const isKnown: Fragment = {
  fragment: `agentpay_order_id is not null and state in ('processing', 'paid', 'failed')`,
}

/** Orders that this account itself has reported: the newest two, then the oldest. */
export const knownOrders = sql<{ merchantId: string; accountId: string }, { orderNo: string }>`
  (select order_no from payouts
   where merchant_id = ${'merchantId'} and account_id = ${'accountId'} and ${isKnown} order by seq desc limit 2)
  union all
  (select order_no from payouts
   where merchant_id = ${'merchantId'} and account_id = ${'accountId'} and ${isKnown} order by seq limit 1)`
