import type { Instant } from '../../../domain/instant.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

export type ReversalKey = { merchantId: string; payoutId: string }

export type StoredReversal = { anomalyId: string; reversedBy: string; reason: string; at: Instant }

export const reversalOf = sql<ReversalKey, StoredReversal>`
  select anomaly_id, reversed_by, reason, at from reversals
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`
