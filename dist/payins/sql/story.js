import { sql } from "../../platform/postgres.js";
import { payinColumns } from "./columns.js";
export const payinById = sql `
  select ${payinColumns} from payins p
  where p.merchant_id = ${'merchantId'} and p.payin_id = ${'payinId'}`;
/** What one transaction told has one time: there the evidence that moved nothing stands last. */
export const payinHistory = sql `
  select at, version, from_state, to_state, reason, source, exchange, times, last_at from history
  where merchant_id = ${'merchantId'} and payin_id = ${'payinId'} order by at, version nulls last`;
export const payinAnomalies = sql `
  select anomaly_id, at, times, last_at, kind, detail, source, exchange, acknowledged_by, acknowledged_reason, acknowledged_at
  from anomalies
  where merchant_id = ${'merchantId'} and order_no = ${'payinId'} and payout_id is null order by at`;
