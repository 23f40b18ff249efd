import type { Instant } from '../../../domain/instant.ts'
import type { Anomaly } from '../../../domain/payout/payout.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

type PublishedAnomaly = Omit<Anomaly, 'exchange' | 'fingerprints'> & { anomalyId: string; at: Instant }

/**
 * The payouts of which the gateway showed an order by a signed statement, also by one that settled nothing, or that came when the
 * ledger lacked the payout. What names no order for sure (`but`) shows none. `besides`: one besides that of the latest attempt.
 */
export const ordersShown = sql<
  { anomalies: readonly { anomalyId: string; merchantId: string }[]; but: string; besides: string[] },
  { merchantId: string; payoutId: string; isBesides: boolean }
>`
  select a.merchant_id, about.payout_id, bool_or(a.kind = any(${'besides'}::text[])) as is_besides
  from ${{ rows: 'anomalies', columns: { merchantId: 'text', anomalyId: 'uuid' } }} given
  join anomalies a on a.merchant_id = given.merchant_id and a.anomaly_id = given.anomaly_id
  cross join lateral (
    select a.payout_id where a.payout_id is not null
    union all
    select payout_id from payouts p
    where a.payout_id is null and p.merchant_id = a.merchant_id and p.order_no = a.order_no
  ) about
  where a.source in ('APPLY', 'CALLBACK', 'QUERY') and a.kind <> ${'but'}
  group by 1, 2`

/** The same, kept with open payins. */
export const showPayins = sql<{
  anomalies: readonly { anomalyId: string; merchantId: string }[]
  but: string
}>`
  update payins p set order_shown = true
  from (
    select a.merchant_id, a.order_no
    from ${{ rows: 'anomalies', columns: { merchantId: 'text', anomalyId: 'uuid' } }} given
    join anomalies a on a.merchant_id = given.merchant_id and a.anomaly_id = given.anomaly_id
    where a.source in ('CALLBACK', 'QUERY') and a.kind <> ${'but'} and a.payout_id is null
  ) shown
  where p.merchant_id = shown.merchant_id and p.payin_id = shown.order_no
    and p.state in ('creating', 'unknown', 'open', 'review')`

/** A row: one of these anomalies, which the ledger lacks. Leaves out merchants that it does not have. */
export const lacksAnomaly = sql<
  { anomalies: readonly { anomalyId: string; merchantId: string }[] },
  { anomalyId: string }
>`
  select given.anomaly_id
  from ${{ rows: 'anomalies', columns: { merchantId: 'text', anomalyId: 'uuid' } }} given
  join merchants m on m.merchant_id = given.merchant_id
  where not exists (
    select from anomalies a where a.merchant_id = given.merchant_id and a.anomaly_id = given.anomaly_id
    offset 0
  )
  limit 1`

/** Those that the ledger lacks, which come back; the others stay as they are, acknowledged or not. */
export const recallPublished = sql<
  { published: readonly PublishedAnomaly[] },
  { merchantId: string; payoutId: string | null; anomalyId: string }
>`
  insert into anomalies (merchant_id, anomaly_id, payout_id, order_no, kind, detail, source, at)
  select merchant_id, anomaly_id, payout_id, order_no, kind, detail, source, to_timestamp(at / 1000)
  from ${{
    rows: 'published',
    columns: {
      ...{ merchantId: 'text', anomalyId: 'uuid', payoutId: 'text', orderNo: 'text', kind: 'text' },
      ...{ detail: 'text', source: 'text', at: 'float8' },
    },
  }} published
  on conflict do nothing
  returning merchant_id, payout_id, anomaly_id`
