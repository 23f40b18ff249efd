import { sql } from "../../platform/postgres.js";
export const fenceOf = sql `
  select merchant_id, recovering_since as since, recovering_by as by, recovering_reason as reason
  from merchants where merchant_id = ${'merchantId'} and recovering_since is not null`;
export const lockFence = sql `
  select from merchants where merchant_id = ${'merchantId'} for update`;
/** The balance that was known is that of another time, and sending begins with the canary. */
export const takeFenceDown = sql `
  update merchants
  set recovering_since = null, recovering_by = null, recovering_reason = null, available = null, ramp = 0
  where merchant_id = ${'merchantId'}`;
/** For how long a "not found" may still be early. */
export const graceLeft = sql `
  select greatest(0, ${'since'}::float8 + ${'graceMs'}::float8 - extract(epoch from now()) * 1000)::float8 as ms`;
