import type { Instant } from '../../domain/instant.ts'
import type { Scrubbed } from '../../domain/mask.ts'
import { sql } from '../../platform/postgres/postgres.ts'

type ReversalKey = { merchantId: string; payoutId: string }

export type StoredReversal = { anomalyId: string; reversedBy: string; reason: string; at: Instant }

export const reversalOf = sql<ReversalKey, StoredReversal>`
  select anomaly_id, reversed_by, reason, at from reversals
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`

export const keepReversal = sql<
  ReversalKey & { anomalyId: string; amount: bigint; by: string; reason: Scrubbed }
>`
  insert into reversals (merchant_id, payout_id, anomaly_id, amount, reversed_by, reason)
  values (${'merchantId'}, ${'payoutId'}, ${'anomalyId'}, ${'amount'}, ${'by'}, ${'reason'})`
