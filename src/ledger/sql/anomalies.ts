import type { Anomaly } from '../../domain/payout/payout.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { saysOtherwise } from './said-otherwise.ts'

/** `exchange`: JSON text. */
type AnomalyRow = Omit<Anomaly, 'exchange'> & {
  anomalyId: string
  exchange: string | null
  times: number
}

/** About one anomaly, at its place from 1: whether it is stored already, and which others there are. */
export type Beside = {
  place: number
  isKept: boolean
  /** How many unacknowledged anomalies of its kind there are about the same payout, or order. */
  open: number
  /** How often somebody has acknowledged the anomaly that counts those beyond the limit. */
  seenBeyond: number
}

/** `beyond`: the detail of anomalies that count those beyond the limit. Skips anomalies about no payout and no order. */
export const anomaliesBeside = sql<
  {
    anomalies: readonly Pick<AnomalyRow, 'merchantId' | 'anomalyId' | 'payoutId' | 'orderNo' | 'kind'>[]
    beyond: string
  },
  Beside
>`
  select n::int as place,
    coalesce((select true from anomalies a
              where a.merchant_id = given.merchant_id and a.anomaly_id = given.anomaly_id limit 1), false) as is_kept,
    beside.open, beside.seen_beyond
  from ${{
    rows: 'anomalies',
    columns: { merchantId: 'text', anomalyId: 'uuid', payoutId: 'text', orderNo: 'text', kind: 'text' },
    ordered: true,
  }} given
  cross join lateral (
    select count(*) filter (where acknowledged_at is null and detail <> ${'beyond'})::int as open,
      count(*) filter (where acknowledged_at is not null and detail = ${'beyond'})::int as seen_beyond
    from (
      select kind, detail, acknowledged_at from anomalies a
      where a.merchant_id = given.merchant_id and a.payout_id = given.payout_id
      union all
      select kind, detail, acknowledged_at from anomalies a
      where a.merchant_id = given.merchant_id and a.order_no = given.order_no and a.payout_id is null
        and given.payout_id is null
    ) same
    where same.kind = given.kind
  ) beside
  where given.payout_id is not null or given.order_no is not null`

/**
 * Stores each anomaly once. If it exists, raises its count and stores the latest report and its time. If the gateway reports it
 * again after a day without, the anomaly is open again, because the acknowledgement was about the first time; an anomaly
 * confirmed as a return stays acknowledged.
 */
export const keepAnomalies = sql<
  { anomalies: readonly AnomalyRow[] },
  { anomalyId: string; merchantId: string; payoutId: string | null; isNew: boolean; saysOtherwise: boolean }
>`
  insert into anomalies as a
    (merchant_id, anomaly_id, payout_id, order_no, kind, detail, source, exchange, times)
  select * from ${{
    rows: 'anomalies',
    columns: {
      ...{ merchantId: 'text', anomalyId: 'uuid', payoutId: 'text', orderNo: 'text', kind: 'text' },
      ...{ detail: 'text', source: 'text', exchange: 'jsonb', times: 'int' },
    },
  }} given
  on conflict (merchant_id, anomaly_id) do update 
    set times = a.times + excluded.times, last_at = now(), source = excluded.source,
        exchange = coalesce(excluded.exchange, a.exchange),
        (acknowledged_by, acknowledged_reason, acknowledged_at) = (
          select a.acknowledged_by, a.acknowledged_reason, a.acknowledged_at
          where excluded.source not in ('CALLBACK', 'QUERY')
            or coalesce(a.last_at, a.at) > now() - interval '1 day'
            or exists (select from reversals r where r.merchant_id = a.merchant_id and r.payout_id = a.payout_id)
        )
  returning anomaly_id, merchant_id, payout_id, xmax = 0 as is_new, ${saysOtherwise} as says_otherwise`
