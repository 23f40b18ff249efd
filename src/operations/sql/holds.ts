import type { HoldReason } from '../../payout/holds.ts'
import type { Instant } from '../../payout/instant.ts'
import { sql } from '../../platform/postgres.ts'

export type StoredHold = {
  payoutId: string
  reason: HoldReason
  earlierPayoutId: string | null
  earlierBatchId: string | null
  /** From when on the payout itself may be sent. */
  paysAt: Instant
  since: Instant
}

/** Why payouts were held for a person, whether they have been released or not. */
export const holdsOf = sql<{ merchantId: string; payoutIds: string[] }, StoredHold>`
  select h.*
  from unnest(${'payoutIds'}::text[]) with ordinality as wanted (payout_id, n)
  cross join lateral (
    select payout_id, reason, earlier_payout_id, earlier_batch_id, pays_at, since from holds
    where holds.merchant_id = ${'merchantId'} and holds.payout_id = wanted.payout_id
    order by reason
  ) h
  order by n`

/** Payouts of a batch that wait for a release, in the order in which they were taken in. */
export const heldOfBatch = sql<{ merchantId: string; batchId: string }, { payoutId: string }>`
  select payout_id from payouts
  where merchant_id = ${'merchantId'} and batch_id = ${'batchId'} and awaits_release
  order by seq`

export type AwaitingRelease = { merchantId: string; reason: HoldReason; count: number }

export const awaitingRelease = sql<object, AwaitingRelease>`
  select merchant_id, reason, count(*)::int as count from payouts where awaits_release
  group by merchant_id, reason order by merchant_id, reason`
