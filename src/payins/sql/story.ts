import type { EvidenceSource, Exchange } from '../../domain/evidence.ts'
import type { Instant } from '../../domain/instant.ts'
import type { Payin } from '../../domain/payin/payin.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { payinColumns } from './columns.ts'

type PayinStoryKey = { merchantId: string; payinId: string }

export const payinById = sql<PayinStoryKey, Payin>`
  select ${payinColumns} from payins p
  where p.merchant_id = ${'merchantId'} and p.payin_id = ${'payinId'}`

/** The payins that wait for a person, the oldest first. */
export const inReview = sql<{ merchantId: string; limit: number }, PayinStoryKey>`
  select merchant_id, payin_id from payins
  where merchant_id = ${'merchantId'} and state = 'review' and state in ('creating', 'unknown', 'open', 'review')
  order by created_at, payin_id
  limit ${'limit'}`

/** Until the transaction ends, nobody else can decide with this UTR about any payin. */
export const lockUtr = sql<{ utr: string }>`
  select pg_advisory_xact_lock(hashtextextended('payin with UTR ' || upper(${'utr'}::text), 0))`

/** A payin with this UTR, of any merchant, other than the given one. */
export const otherWithUtr = sql<PayinStoryKey & { utr: string }, PayinStoryKey>`
  select merchant_id, payin_id from payins
  where utr is not null and upper(utr) = upper(${'utr'}) and (merchant_id, payin_id) <> (${'merchantId'}, ${'payinId'})
  limit 1`

/** How often the same was reported, and when last; null: once. */
type PayinRepeats = { times: number; lastAt: Instant | null }

export type PayinHistoryEntry = {
  at: Instant
  /** Null if the evidence moved nothing. */
  version: number | null
  fromState: string | null
  toState: string
  reason: string | null
  source: EvidenceSource
  exchange: Exchange | null
} & PayinRepeats

/** The entries of one transaction have one time; among them, evidence that moved nothing comes last. */
export const payinHistory = sql<PayinStoryKey, PayinHistoryEntry>`
  select at, version, from_state, to_state, reason, source, exchange, times, last_at from history
  where merchant_id = ${'merchantId'} and payin_id = ${'payinId'} order by at, version nulls last`

export type PayinSighting = {
  anomalyId: string
  at: Instant
  kind: string
  detail: string
  source: EvidenceSource
  exchange: Exchange | null
  /** Null until a person acknowledged it. */
  acknowledgedBy: string | null
  acknowledgedReason: string | null
  acknowledgedAt: Instant | null
} & PayinRepeats

export const payinAnomalies = sql<PayinStoryKey, PayinSighting>`
  select anomaly_id, at, times, last_at, kind, detail, source, exchange, acknowledged_by, acknowledged_reason, acknowledged_at
  from anomalies
  where merchant_id = ${'merchantId'} and order_no = ${'payinId'} and payout_id is null order by at`
