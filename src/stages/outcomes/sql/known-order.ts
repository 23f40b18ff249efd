import { sql } from '../../../platform/postgres/postgres.ts'

/** Any order that this account itself has reported. */
export const someKnownOrder = sql<{ merchantId: string; accountId: string }, { orderNo: string }>`
  select order_no from payouts
  where merchant_id = ${'merchantId'} and account_id = ${'accountId'} and agentpay_order_id is not null and state in ('processing', 'paid', 'failed')
  limit 1`
