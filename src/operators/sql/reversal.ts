import type { Instant } from '../../domain/instant.ts'
import type { Scrubbed } from '../../domain/mask.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import type { ReversalKey } from '../../queries/sql/payouts/reversal.ts'

/** `paidAt`: null if that was not kept when it became paid. */
export const keepReversal = sql<
  ReversalKey & { anomalyId: string; amount: bigint; by: string; reason: Scrubbed },
  { paidAt: Instant | null }
>`
  insert into reversals (merchant_id, payout_id, anomaly_id, amount, reversed_by, reason)
  values (${'merchantId'}, ${'payoutId'}, ${'anomalyId'}, ${'amount'}, ${'by'}, ${'reason'})
  returning (
    select paid_at from payouts p where p.merchant_id = reversals.merchant_id and p.payout_id = reversals.payout_id
  )`
