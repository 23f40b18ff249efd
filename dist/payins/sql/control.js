import { sql } from "../../platform/postgres.js";
/** Any payin of which the gateway itself said that it exists. */
export const someKnownPayin = sql `
  select payin_id from payins
  where merchant_id = ${'merchantId'} and pay_order_id is not null and state in ('open', 'paid', 'failed')
  limit 1`;
