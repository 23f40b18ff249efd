import { sql } from "../../platform/postgres.js";
const purseColumns = {
    fragment: `paused_reason, recovering_since, available, snapshot_at, snapshot_in_doubt, snapshot_claimed,
    claimed_total, fee_estimate, rate_next, ramp, bad_run, circuit_opened, circuit_open_until, circuit_reason`,
};
/**
 * A merchant whose settings changed (or a new one) starts with the canary, an unknown balance and no
 * positive control. `feeEstimate` is only where it begins.
 */
export const openPurse = sql `
  insert into merchants (merchant_id, settings_hash, fee_estimate)
  values (${'merchantId'}, ${'settingsHash'}, ${'feeEstimate'})
  on conflict (merchant_id) do update
  set settings_hash = excluded.settings_hash, ramp = 0, bad_run = 0, circuit_opened = 0, circuit_open_until = null,
      circuit_reason = null, available = null
  where merchants.settings_hash <> excluded.settings_hash`;
/** What changes a merchant's pace, in whatever process, queues up here. */
export const lockPurse = sql `
  select ${purseColumns} from merchants where merchant_id = ${'merchantId'} for update`;
/** The same for a claim, which does not wait: no row while another holds it. */
export const lockFreePurse = sql `
  select ${purseColumns} from merchants where merchant_id = ${'merchantId'} for update skip locked`;
/** Read after the purse is locked: a count taken before would not see the claim that held it. */
export const traffic = sql `
  select
    (select count(*) from payouts where merchant_id = ${'merchantId'} and in_doubt and state = 'submitting') as in_flight,
    (select coalesce(max(lag_ms), 0) from callback_lag where seen_at > now() - interval '3 seconds') as lag_ms`;
export const spend = sql `
  update merchants
  set claimed_total = claimed_total + ${'cost'}, rate_next = to_timestamp(${'rateNext'}::float8 / 1000)
  where merchant_id = ${'merchantId'}`;
export const setMood = sql `
  update merchants
  set available = ${'available'}, fee_estimate = ${'feeEstimate'}, ramp = ${'ramp'}, bad_run = ${'badRun'},
      circuit_opened = ${'circuitOpened'}, circuit_open_until = to_timestamp(${'circuitOpenUntil'}::float8 / 1000),
      circuit_reason = ${'circuitReason'}
  where merchant_id = ${'merchantId'}`;
/** What the next balance answer will have to be compared with. One statement, so one moment. */
export const beforeAsking = sql `
  select m.claimed_total as claimed,
    (select coalesce(sum(p.amount + m.fee_estimate), 0)::bigint from payouts p
     where p.merchant_id = m.merchant_id and p.in_doubt) as in_doubt
  from merchants m where m.merchant_id = ${'merchantId'}`;
/** An answer to a question asked earlier than the one that stands never replaces it. */
export const keepBalance = sql `
  update merchants
  set available = ${'available'}, snapshot_at = now(), snapshot_claimed = ${'claimed'}, snapshot_in_doubt = ${'inDoubt'}
  where merchant_id = ${'merchantId'} and (available is null or snapshot_claimed <= ${'claimed'})`;
/** Merchants that have something to send. */
export const merchantsWithWork = sql `
  select m.merchant_id from merchants m
  cross join lateral (select from payouts p where p.merchant_id = m.merchant_id and p.ready limit 1) waiting`;
