import { sql } from "../../platform/postgres.js";
export const byPayoutId = sql `
  select payout_id from payouts where merchant_id = ${'merchantId'} and payout_id = ${'id'}`;
export const byOrderNo = sql `
  select payout_id from payouts where merchant_id = ${'merchantId'} and order_no = ${'id'}`;
/** In no index, so that storing it stays cheap: about a second for every million payouts of the merchant. */
export const byAgentpayOrderId = sql `
  select payout_id from payouts where merchant_id = ${'merchantId'} and agentpay_order_id = ${'id'}`;
/** A payout of any merchant, but not this one, that has the UTR. In no index either: a walk along all payouts. */
export const otherWithUtr = sql `
  select merchant_id, payout_id from payouts
  where upper(utr) = upper(${'utr'}) and (merchant_id, payout_id) <> (${'merchantId'}, ${'payoutId'})
  limit 1`;
/** Payouts of a batch in these states, in the order in which they were taken in. */
export const openOfBatch = sql `
  select payout_id from payouts
  where merchant_id = ${'merchantId'} and batch_id = ${'batchId'} and state = any(${'states'}::text[])
  order by seq`;
