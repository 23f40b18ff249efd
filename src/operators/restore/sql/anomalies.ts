import type { Instant } from '../../../domain/instant.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

type AnomalyColumns = {
  merchantIds: string[]
  anomalyIds: string[]
  payoutIds: (string | null)[]
  orderNos: (string | null)[]
  kinds: string[]
  details: string[]
  sources: string[]
  ats: Instant[]
}

/** Those that the ledger lacks, which come back; the others stay as they are, acknowledged or not. */
export const keepTold = sql<AnomalyColumns, { merchantId: string; payoutId: string | null }>`
  insert into anomalies (merchant_id, anomaly_id, payout_id, order_no, kind, detail, source, at)
  select merchant_id, anomaly_id, payout_id, order_no, kind, detail, source, to_timestamp(at / 1000)
  from unnest(${'merchantIds'}::text[], ${'anomalyIds'}::uuid[], ${'payoutIds'}::text[], ${'orderNos'}::text[],
              ${'kinds'}::text[], ${'details'}::text[], ${'sources'}::text[], ${'ats'}::float8[])
    as told (merchant_id, anomaly_id, payout_id, order_no, kind, detail, source, at)
  on conflict do nothing
  returning merchant_id, payout_id`
