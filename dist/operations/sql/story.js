import { payoutColumns } from "../../ledger/sql/columns.js";
import { sql } from "../../platform/postgres.js";
export const payoutWithCommand = sql `
  select ${payoutColumns}, p.priority, p.accepted_at, p.updated_at, c.row_number, c.not_before, c.sealed, c.faults
  from payouts p join payout_commands c on c.merchant_id = p.merchant_id and c.payout_id = p.payout_id
  where p.merchant_id = ${'merchantId'} and p.payout_id = ${'payoutId'}`;
export const attemptsOf = sql `
  select attempt, order_no, owner, claimed_at, lease_until from attempts
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'} order by attempt`;
/** What one transaction told has one time: there the evidence that moved nothing stands last. */
export const historyOf = sql `
  select at, version, from_state, to_state, reason, source, exchange, times, last_at from history
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'} order by at, version nulls last`;
export const anomaliesAbout = sql `
  select anomaly_id, at, times, last_at, kind, detail, source, order_no, exchange, acknowledged_by, acknowledged_reason, acknowledged_at
  from anomalies
  where merchant_id = ${'merchantId'} and (payout_id = ${'payoutId'} or order_no = ${'orderNo'}) order by at`;
