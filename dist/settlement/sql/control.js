import { sql } from "../../platform/postgres.js";
/** Any order of which the gateway itself said that it exists. */
export const someKnownOrder = sql `
  select order_no from payouts
  where merchant_id = ${'merchantId'} and agentpay_order_id is not null and state in ('processing', 'paid', 'failed')
  limit 1`;
