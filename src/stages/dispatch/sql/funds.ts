import { estimatedFee, paidFromBalance, sumOfPaise } from '../../../ledger/sql/estimated-fee.ts'
import { type Fragment, sql } from '../../../platform/postgres/postgres.ts'
import type { CircuitState, MerchantFunds } from '../merchant-gate.ts'

/** A time is read in whole ms; `rate_next` must keep its microseconds, or each claim would gain up to a ms of the budget. */
const fundsColumns: Fragment = {
  fragment: `settings_hash, paused_reason, recovering_since, available, snapshot_at, snapshot_in_doubt, snapshot_claimed,
    claimed_total, fee_estimate, fee_share, (extract(epoch from rate_next) * 1000)::float8 as rate_next, learned_rate, rate_lowered_at, rate_raised_at, warm_up, consecutive_failures, refusals, circuit_opened, circuit_open_until, circuit_reason,
    short_payout_id`,
}

/**
 * `shortPayoutId`: the next payout, if the balance did not cover it at the last claim. `settingsHash`: of the gateway settings
 * in force; '': none are yet.
 */
export type MerchantPace = MerchantFunds &
  CircuitState & { shortPayoutId: string | null; settingsHash: string }

/** Changes to a merchant's pace, from any process, queue up here. A cancellation does not block it. */
export const lockFunds = sql<{ merchantId: string }, MerchantPace>`
  select ${fundsColumns} from merchants where merchant_id = ${'merchantId'} for no key update`

/**
 * The same for a claim, which does not wait: returns no row while another transaction holds it. `oldest`: the migration that a
 * payoutd must know to work on these tables. `isSetBack`: it is proven that the ledger lost something, and not every merchant is
 * fenced yet.
 */
export const lockFundsIfFree = sql<
  { merchantId: string },
  MerchantPace & { oldest: string; isSetBack: boolean }
>`
  select ${fundsColumns}, (select oldest from compatibility) as oldest, exists (select from proven_losses) as is_set_back
  from merchants where merchant_id = ${'merchantId'} for no key update skip locked`

/** Run it after locking the merchant's row: an earlier count would not see the claim that held the lock. */
export const traffic = sql<{ merchantId: string }, { inFlight: bigint; lagMs: number }>`
  select
    (select count(*) from payouts where merchant_id = ${'merchantId'} and in_doubt and state = 'submitting') as in_flight,
    (select coalesce(max(lag_ms), 0) from merchant_callback_lag
     where merchant_id = ${'merchantId'} and seen_at between now() - interval '3 seconds' and now() + interval '3 seconds') as lag_ms`

export const spend = sql<{ merchantId: string; cost: bigint; rateNext: number | null }>`
  update merchants
  set claimed_total = claimed_total + ${'cost'}, rate_next = to_timestamp(${'rateNext'}::float8 / 1000)
  where merchant_id = ${'merchantId'}`

/** Notes the next payout if the balance does not cover it, to show operators why nothing moves. */
export const noteShort = sql<{ merchantId: string; payoutId: string | null }>`
  update merchants
  set short_payout_id = ${'payoutId'}, short_since = case when ${'payoutId'}::text is not null then now() end
  where merchant_id = ${'merchantId'}`

export const saveCircuit = sql<{ merchantId: string } & CircuitState>`
  update merchants
  set available = ${'available'}, claimed_total = ${'claimedTotal'}, fee_estimate = ${'feeEstimate'}, fee_share = ${'feeShare'}, learned_rate = ${'learnedRate'},
      rate_lowered_at = to_timestamp(${'rateLoweredAt'}::float8 / 1000), rate_raised_at = to_timestamp(${'rateRaisedAt'}::float8 / 1000), warm_up = ${'warmUp'}, consecutive_failures = ${'consecutiveFailures'}, refusals = ${'refusals'},
      circuit_opened = ${'circuitOpened'}, circuit_open_until = to_timestamp(${'circuitOpenUntil'}::float8 / 1000),
      circuit_reason = ${'circuitReason'}
  where merchant_id = ${'merchantId'}`

/**
 * The state to compare the next balance answer with: what is on its way, or in doubt, at the merchant number in force. One
 * statement, so it is of one moment.
 */
export const balanceWatermark = sql<
  { merchantId: string },
  { settingsHash: string; claimed: bigint; inDoubt: bigint }
>`
  select m.settings_hash, m.claimed_total as claimed,
    (select ${sumOfPaise(`p.amount + ${estimatedFee.fragment}`)} from payouts p
     where p.merchant_id = m.merchant_id and p.in_doubt and ${paidFromBalance}) as in_doubt
  from merchants m where m.merchant_id = ${'merchantId'}`

/** Never replaces a balance with the answer to an earlier query, or to one under other settings. */
export const saveBalance = sql<{
  merchantId: string
  settingsHash: string
  available: bigint
  claimed: bigint
  inDoubt: bigint
}>`
  update merchants
  set available = ${'available'}, snapshot_at = now(), snapshot_claimed = ${'claimed'}, snapshot_in_doubt = ${'inDoubt'}
  where merchant_id = ${'merchantId'} and settings_hash = ${'settingsHash'}
    and (available is null or snapshot_claimed <= ${'claimed'})`

/** Merchants that have payouts to send, and may send. `rowVersion` changes with any change in the merchant's row. */
export const merchantsWithWork = sql<object, { merchantId: string; rowVersion: string }>`
  select m.merchant_id, m.xmin::text as row_version from merchants m
  cross join lateral (select from payouts p where p.merchant_id = m.merchant_id and p.ready limit 1) waiting
  where m.paused_reason is null and m.recovering_since is null`
