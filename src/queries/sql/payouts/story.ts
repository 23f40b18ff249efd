import type { Exchange } from '../../../domain/evidence.ts'
import type { Fault } from '../../../domain/fault.ts'
import type { Instant } from '../../../domain/instant.ts'
import type { Payout } from '../../../domain/payout/payout.ts'
import type { NamedAccount } from '../../../gateway/dialect/account.ts'
import { payoutColumns } from '../../../ledger/sql/columns.ts'
import { sql } from '../../../platform/postgres/postgres.ts'
import type { Acknowledgement, Repeats } from '../anomalies.ts'

type PayoutStoryKey = { merchantId: string; payoutId: string }

export type PayoutRow = Payout & {
  priority: number
  acceptedAt: Instant
  updatedAt: Instant
  rowNumber: number | null
  /** The time before which it must not be sent; null: the command names none. */
  notBefore: Instant | null
  sealed: Buffer
  faults: Fault[] | null
}

export const payoutWithCommand = sql<PayoutStoryKey, PayoutRow>`
  select ${payoutColumns}, p.priority, p.accepted_at, p.updated_at, c.row_number, c.not_before, c.sealed, c.faults
  from payouts p join payout_commands c on c.merchant_id = p.merchant_id and c.payout_id = p.payout_id
  where p.merchant_id = ${'merchantId'} and p.payout_id = ${'payoutId'}`

/** With the gateway account that it was sent to; nulls: the ledger did not keep it. */
export type Attempt = {
  attempt: number
  orderNo: string
  /** The process that claimed it. */
  owner: string
  /** The ledger had lost it: a recovery restored it at `claimedAt`, and nobody knows when it was sent. */
  isPutBack: boolean
  claimedAt: Instant
  leaseUntil: Instant
} & (NamedAccount | { [Field in keyof NamedAccount]: null })

export const attemptsOf = sql<PayoutStoryKey, Attempt>`
  select attempt, order_no, owner, owner = 'recovery' as is_put_back, claimed_at, lease_until, account_id, base_url, mch_id, dialect_name
  from attempts left join gateway_settings using (merchant_id, settings_hash)
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'} order by attempt`

export type HistoryEntry = {
  at: Instant
  /** Null: the evidence moved nothing. */
  version: number | null
  fromState: string | null
  toState: string
  reason: string | null
  source: string
  exchange: Exchange | null
} & Repeats

/**
 * All entries of one transaction have the same time; among them, evidence that moved nothing comes last. What a recovery read
 * back has the time at which it was published first.
 */
export const historyOf = sql<PayoutStoryKey, HistoryEntry>`
  select least(published_at, at) as at, version, from_state, to_state, reason, source, exchange, times, last_at from history
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'} order by least(published_at, at), version nulls last`

export type Sighting = {
  anomalyId: string
  at: Instant
  kind: string
  detail: string
  source: string
  orderNo: string | null
  exchange: Exchange | null
} & Acknowledgement &
  Repeats

export const anomaliesAbout = sql<PayoutStoryKey & { orderNo: string | null }, Sighting>`
  select anomaly_id, at, times, last_at, kind, detail, source, order_no, exchange, acknowledged_by, acknowledged_reason, acknowledged_at
  from anomalies
  where merchant_id = ${'merchantId'} and (payout_id = ${'payoutId'} or order_no = ${'orderNo'}) order by at`
