import { sql } from "../../platform/postgres.js";
export const openKeys = sql `
  select p.payout_id, p.version
  from recovered_payouts r join payouts p on p.merchant_id = r.merchant_id and p.payout_id = r.payout_id
  where r.merchant_id = ${'merchantId'} and r.found is null`;
/** The payout is locked, and stays in its state. */
export const raiseVersion = sql `
  update payouts set version = ${'version'}, attempt = ${'attempt'}, updated_at = now()
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`;
export const keepSent = sql `
  update recovered_payouts set sent = true where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`;
/** Attempts that the ledger had lost, the first and the last. */
export const recordAttempts = sql `
  insert into attempts (merchant_id, payout_id, attempt, order_no, owner, lease_until)
  select ${'merchantId'}, ${'payoutId'}, attempt, ${'orderNo'}, 'recovery', now()
  from generate_series(${'first'}::int, ${'last'}::int) as lost (attempt)`;
