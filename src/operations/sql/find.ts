import { sql } from '../../platform/postgres.ts'

type Found = { payoutId: string }

export const byPayoutId = sql<{ merchantId: string; id: string }, Found>`
  select payout_id from payouts where merchant_id = ${'merchantId'} and payout_id = ${'id'}`

export const byOrderNo = sql<{ merchantId: string; id: string }, Found>`
  select payout_id from payouts where merchant_id = ${'merchantId'} and order_no = ${'id'}`

/** In no index, so that storing it stays cheap: about a second for every million payouts of the merchant. */
export const byAgentpayOrderId = sql<{ merchantId: string; id: string }, Found>`
  select payout_id from payouts where merchant_id = ${'merchantId'} and agentpay_order_id = ${'id'}`
