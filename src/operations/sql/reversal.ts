import type { Instant } from '../../payout/instant.ts'
import { sql } from '../../platform/postgres.ts'

type Key = { merchantId: string; payoutId: string }

export type StoredReversal = { anomalyId: string; reversedBy: string; reason: string; at: Instant }

export const reversalOf = sql<Key, StoredReversal>`
  select anomaly_id, reversed_by, reason, at from reversals
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`

export const keepReversal = sql<Key & { anomalyId: string; amount: bigint; by: string; reason: string }>`
  insert into reversals (merchant_id, payout_id, anomaly_id, amount, reversed_by, reason)
  values (${'merchantId'}, ${'payoutId'}, ${'anomalyId'}, ${'amount'}, ${'by'}, ${'reason'})`

/**
 * The gateway's signed word that the order of a paid payout failed. No other contradiction about it comes by
 * callback or query: `settle` absorbs all else that they say of what is paid.
 */
export const returnsTold = sql<Key, { anomalyId: string; at: Instant }>`
  select anomaly_id, at from anomalies
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'} and kind = 'contradiction'
    and source in ('CALLBACK', 'QUERY')
  order by at`
