import type { Exchange } from '../../domain/evidence.ts'
import type { Instant } from '../../domain/instant.ts'
import type { State } from '../../domain/payout/states.ts'
import { type Fragment, sql } from '../../platform/postgres/postgres.ts'

/** Null until a person acknowledged it. */
export type Acknowledgement = {
  acknowledgedBy: string | null
  acknowledgedReason: string | null
  acknowledgedAt: Instant | null
}

/** How often it was reported, and when last; null: once. */
export type Repeats = { times: number; lastAt: Instant | null }

export type ListedAnomaly = {
  anomalyId: string
  /** Null: it is about a payin, or about an unknown order. */
  payoutId: string | null
  orderNo: string | null
  kind: string
  detail: string
  source: string
  at: Instant
} & Acknowledgement &
  Repeats

const listed: Fragment = {
  fragment: `anomaly_id, payout_id, order_no, kind, detail, source, at, times, last_at, acknowledged_by,
    acknowledged_reason, acknowledged_at`,
}

/** First the unacknowledged ones, the oldest first; then the others, the newest first. */
export const anomaliesOf = sql<{ merchantId: string; limit: number }, ListedAnomaly>`
  select ${listed} from (
    (select * from anomalies
     where merchant_id = ${'merchantId'} and acknowledged_at is null order by at limit ${'limit'})
    union all
    (select * from anomalies
     where merchant_id = ${'merchantId'} and acknowledged_at is not null order by at desc limit ${'limit'})
  ) both_kinds
  order by case when acknowledged_at is null then at end, at desc
  limit ${'limit'}`

export type WholeAnomaly = ListedAnomaly & {
  exchange: Exchange | null
  /** The current state of the payout that it is about. */
  payoutState: State | null
}

export const anomalyById = sql<{ merchantId: string; anomalyId: string }, WholeAnomaly>`
  select ${listed}, exchange,
    (select state from payouts p where p.merchant_id = anomalies.merchant_id and p.payout_id = anomalies.payout_id)
      as payout_state
  from anomalies
  where merchant_id = ${'merchantId'} and anomaly_id = ${'anomalyId'}`

export type OpenAnomalies = {
  merchantId: string
  count: number
  /** Of these, payouts whose id arrived again with other content, which is not paid. */
  changed: number
  oldestId: string
  oldestKind: string
  oldestAt: Instant
}

export const openAnomalies = sql<object, OpenAnomalies>`
  select o.merchant_id, o.count, o.changed, oldest.anomaly_id as oldest_id, oldest.kind as oldest_kind, oldest.at as oldest_at
  from (
    select merchant_id, count(*)::int as count,
      (count(distinct payout_id) filter (where kind = 'same-id-other-content'))::int as changed
    from anomalies where acknowledged_at is null group by merchant_id
  ) o
  cross join lateral (
    select anomaly_id, kind, at from anomalies a
    where a.merchant_id = o.merchant_id and a.acknowledged_at is null
    order by at limit 1
  ) oldest
  order by o.merchant_id`
