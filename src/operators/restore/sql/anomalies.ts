import type { Instant } from '../../../domain/instant.ts'
import type { Anomaly } from '../../../domain/payout/payout.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

type ToldAnomaly = Omit<Anomaly, 'exchange' | 'fingerprints'> & { anomalyId: string; at: Instant }

/** Restores the anomalies that the ledger lacks; the others stay as they are, acknowledged or not. */
export const keepTold = sql<
  { told: readonly ToldAnomaly[] },
  { merchantId: string; payoutId: string | null }
>`
  insert into anomalies (merchant_id, anomaly_id, payout_id, order_no, kind, detail, source, at)
  select merchant_id, anomaly_id, payout_id, order_no, kind, detail, source, to_timestamp(at / 1000)
  from ${{
    rows: 'told',
    columns: {
      ...{ merchantId: 'text', anomalyId: 'uuid', payoutId: 'text', orderNo: 'text', kind: 'text' },
      ...{ detail: 'text', source: 'text', at: 'float8' },
    },
  }} told
  on conflict do nothing
  returning merchant_id, payout_id`
