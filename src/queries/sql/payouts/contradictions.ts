import { sql } from '../../../platform/postgres/postgres.ts'

/** What signed reports of the gateway say against the end of a payout; `against`: how the details of such an anomaly begin. */
export const reportedContradictions = sql<
  { merchantId: string; payoutId: string; against: string[] },
  { anomalyId: string }
>`
  select anomaly_id from anomalies
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'} and kind = 'contradiction'
    and source in ('CALLBACK', 'QUERY')
    and exists (select from unnest(${'against'}::text[]) as given (beginning) where starts_with(detail, beginning))
  order by at`
