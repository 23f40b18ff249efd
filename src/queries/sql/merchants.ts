import type { Instant } from '../../domain/instant.ts'
import type { Paise } from '../../domain/money.ts'
import type { Fees } from '../../domain/payout/fee.ts'
import { type Fragment, sql } from '../../platform/postgres/postgres.ts'

export type Pause = { pausedBy: string; pausedReason: string; pausedAt: Instant }
/** Since when payoutd sends nothing because the ledger was restored (`payoutd recover`). */
export type Recovering = { recoveringSince: Instant; recoveringBy: string; recoveringReason: string }
type NotRecovering = { recoveringSince: null; recoveringBy: null; recoveringReason: null }
type NoPause = { pausedBy: null; pausedReason: null; pausedAt: null }

export type MerchantRow = Fees & {
  merchantId: string
  available: Paise | null
  snapshotAt: Instant | null
  snapshotInDoubt: Paise
  snapshotClaimed: Paise
  claimedTotal: Paise
  rateNext: Instant | null
  learnedRate: number | null
  warmUp: number
  consecutiveFailures: number
  refusals: number
  circuitOpened: number
  circuitOpenUntil: Instant | null
  circuitReason: string | null
  isCircuitOpen: boolean
  now: Instant
} & (Pause | NoPause) &
  (Recovering | NotRecovering)

/** So many bad answers in a row, or refusals of a canary, are told to people. */
export const TOLD_AFTER = 20

/**
 * For a row `m` of merchants: its circuit opened, or would have in a warm-up, or the gateway refused everything in one, and the gateway
 * has since accepted (or, after failures, refused) nothing. Without payouts to send (again) nobody finds out whether it would.
 */
export const isCircuitOpen: Fragment = {
  fragment: `((m.consecutive_failures >= ${TOLD_AFTER} or m.refusals >= ${TOLD_AFTER} or m.circuit_opened > 0) and m.paused_at is null and m.recovering_since is null
    and (m.circuit_open_until > now()
      or exists (select from payouts p where p.merchant_id = m.merchant_id and p.ready)
      or exists (select from payouts p
                 where p.merchant_id = m.merchant_id and p.in_doubt and p.reason = 'later' and p.cancel_request is null)))`,
}

export const merchantRows = sql<object, MerchantRow>`
  select merchant_id, paused_by, paused_reason, paused_at, available, snapshot_at, snapshot_in_doubt,
    snapshot_claimed, claimed_total, fee_estimate, fee_share, rate_next, learned_rate, warm_up, consecutive_failures, refusals, circuit_opened, circuit_open_until,
    circuit_reason, ${isCircuitOpen} as is_circuit_open, recovering_since, recovering_by, recovering_reason, now() as now
  from merchants m order by merchant_id`

export const inReview = sql<object, { merchantId: string; count: number }>`
  select m.merchant_id, r.count
  from merchants m
  cross join lateral (
    select count(*)::int as count from payouts p where p.merchant_id = m.merchant_id and p.in_review
  ) r`

/** Payins in review by merchant, with the oldest request. */
export type PayinsInReview = { merchantId: string; count: number; oldestId: string; oldestAt: Instant }

export const payinsInReview = sql<object, PayinsInReview>`
  select merchant_id, count(*)::int as count, (array_agg(payin_id order by created_at))[1] as oldest_id,
    min(created_at) as oldest_at
  from payins
  where state = 'review' and state in ('creating', 'unknown', 'open', 'review')
  group by 1 order by 1`

/** Whether the ledger has anything of a merchant, whose settings may be gone. */
export const knownMerchant = sql<{ merchantId: string }, { known: boolean }>`
  select exists (select from merchants where merchant_id = ${'merchantId'})
    or exists (select from payouts where merchant_id = ${'merchantId'})
    or exists (select from payins where merchant_id = ${'merchantId'}) as known`
