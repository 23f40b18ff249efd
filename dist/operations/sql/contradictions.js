import { sql } from "../../platform/postgres.js";
/**
 * The gateway's signed word that the order of a paid payout failed, or that of a failed one was paid. No other
 * contradiction about it comes by callback or query: `settle` absorbs all else that they say of what has ended.
 */
export const contradictionsTold = sql `
  select anomaly_id from anomalies
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'} and kind = 'contradiction'
    and source in ('CALLBACK', 'QUERY')
  order by at`;
