import { sql } from "../../platform/postgres.js";
export const merchantRows = sql `
  select merchant_id, paused_by, paused_reason, paused_at, available, snapshot_at, snapshot_in_doubt,
    snapshot_claimed, claimed_total, fee_estimate, rate_next, ramp, bad_run, circuit_opened, circuit_open_until,
    circuit_reason, recovering_since, recovering_by, recovering_reason, now() as now
  from merchants order by merchant_id`;
/**
 * Everything that still moves by itself, of one merchant or (null) of all. One walk along the index
 * `payouts_timers`, which holds exactly these: 0.8 s for a million queued among two million, on two cores.
 */
export const openPayouts = sql `
  select merchant_id, state, count(*)::int as count, sum(amount)::bigint as amount
  from payouts
  where due_at is not null and (${'merchantId'}::text is null or merchant_id = ${'merchantId'})
  group by merchant_id, state`;
export const inReview = sql `
  select m.merchant_id, r.count
  from merchants m
  cross join lateral (
    select count(*)::int as count from payouts p where p.merchant_id = m.merchant_id and p.in_review
  ) r`;
/** Whether the ledger has anything of a merchant, whose settings may be gone. */
export const knownMerchant = sql `
  select exists (select from merchants where merchant_id = ${'merchantId'})
    or exists (select from payouts where merchant_id = ${'merchantId'})
    or exists (select from payins where merchant_id = ${'merchantId'}) as known`;
