import { PAID_AFTER_RETURN } from '../../../domain/anomaly-details.ts'
import type { Instant } from '../../../domain/instant.ts'
import { type Fragment, sql } from '../../../platform/postgres/postgres.ts'

export type ReversalKey = { merchantId: string; payoutId: string }

export type StoredReversal = { anomalyId: string; reversedBy: string; reason: string; at: Instant }

/**
 * Whether a person has confirmed that the money of a payout came back, and no report that nobody has acknowledged says since that it
 * is paid. `merchantId` and `payoutId`: columns.
 */
export const cameBack = (merchantId: string, payoutId: string): Fragment => ({
  fragment: `(
    exists (select from reversals r where r.merchant_id = ${merchantId} and r.payout_id = ${payoutId})
    and not exists (
      select from anomalies a
      where a.merchant_id = ${merchantId} and a.payout_id = ${payoutId} and a.kind = 'contradiction'
        and starts_with(a.detail, '${PAID_AFTER_RETURN}') and a.acknowledged_at is null)
  )`,
})

export const reversalOf = sql<ReversalKey, StoredReversal>`
  select anomaly_id, reversed_by, reason, at from reversals
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`
