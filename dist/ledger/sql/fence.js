import { sql } from "../../platform/postgres.js";
/**
 * Waits for a claim under way: what is claimed later has seen the fence. One that stands is left as it is. The row may be
 * the merchant's first: dispatch finds other settings than the empty hash, and begins as ever.
 */
export const raiseFence = sql `
  insert into merchants as m (merchant_id, settings_hash, fee_estimate, recovering_since, recovering_by,
                              recovering_reason)
  values (${'merchantId'}, '', ${'feeEstimate'}, now(), ${'by'}, ${'reason'})
  on conflict (merchant_id) do update
  set recovering_since = coalesce(m.recovering_since, excluded.recovering_since),
      recovering_by = coalesce(m.recovering_by, excluded.recovering_by),
      recovering_reason = coalesce(m.recovering_reason, excluded.recovering_reason)
  returning merchant_id, recovering_since as since, recovering_by as by, recovering_reason as reason`;
