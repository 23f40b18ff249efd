import { sql } from "../../platform/postgres.js";
export const reversalOf = sql `
  select anomaly_id, reversed_by, reason, at from reversals
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`;
export const keepReversal = sql `
  insert into reversals (merchant_id, payout_id, anomaly_id, amount, reversed_by, reason)
  values (${'merchantId'}, ${'payoutId'}, ${'anomalyId'}, ${'amount'}, ${'by'}, ${'reason'})`;
