import { sql } from "../../platform/postgres.js";
const listed = {
    fragment: `anomaly_id, payout_id, order_no, kind, detail, source, at, times, last_at, acknowledged_by,
    acknowledged_reason, acknowledged_at`,
};
/** Those that nobody has acknowledged, the oldest first; then the others, the newest first. */
export const anomaliesOf = sql `
  select ${listed} from (
    (select * from anomalies
     where merchant_id = ${'merchantId'} and acknowledged_at is null order by at limit ${'limit'})
    union all
    (select * from anomalies
     where merchant_id = ${'merchantId'} and acknowledged_at is not null order by at desc limit ${'limit'})
  ) both_kinds
  order by case when acknowledged_at is null then at end, at desc
  limit ${'limit'}`;
export const anomalyById = sql `
  select ${listed}, exchange,
    (select state from payouts p where p.merchant_id = anomalies.merchant_id and p.payout_id = anomalies.payout_id)
      as payout_state
  from anomalies
  where merchant_id = ${'merchantId'} and anomaly_id = ${'anomalyId'}`;
/** In the order of the primary key, so that two who acknowledge the same wait for one another. */
export const lockAnomalies = sql `
  select anomaly_id, acknowledged_by, acknowledged_reason, acknowledged_at from anomalies
  where merchant_id = ${'merchantId'} and anomaly_id = any(${'anomalyIds'}::uuid[])
  order by anomaly_id
  for update`;
/** One that is acknowledged stays as it was. */
export const setAcknowledged = sql `
  update anomalies
  set acknowledged_by = ${'by'}, acknowledged_reason = ${'reason'}, acknowledged_at = now()
  where merchant_id = ${'merchantId'} and anomaly_id = any(${'anomalyIds'}::uuid[]) and acknowledged_at is null`;
export const openAnomalies = sql `
  select o.merchant_id, o.count, oldest.anomaly_id as oldest_id, oldest.kind as oldest_kind, oldest.at as oldest_at
  from (
    select merchant_id, count(*)::int as count from anomalies where acknowledged_at is null group by merchant_id
  ) o
  cross join lateral (
    select anomaly_id, kind, at from anomalies a
    where a.merchant_id = o.merchant_id and a.acknowledged_at is null
    order by at limit 1
  ) oldest
  order by o.merchant_id`;
