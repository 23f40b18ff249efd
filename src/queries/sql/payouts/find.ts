import type { PayoutKey } from '../../../domain/identifiers.ts'
import type { Instant } from '../../../domain/instant.ts'
import { RESENT } from '../../../domain/payout/resolve.ts'
import type { State } from '../../../domain/payout/states.ts'

import { sql } from '../../../platform/postgres/postgres.ts'

type FoundPayout = { payoutId: string }

export const byPayoutIds = sql<{ merchantId: string; ids: string[] }, FoundPayout>`
  select payout_id from payouts
  where merchant_id = ${'merchantId'} and payout_id = any(${'ids'}::text[]) order by payout_id`

export const byOrderNo = sql<{ merchantId: string; id: string }, FoundPayout>`
  select payout_id from payouts where merchant_id = ${'merchantId'} and order_no = ${'id'}`

export const byAgentpayOrderId = sql<{ merchantId: string; id: string }, FoundPayout>`
  select payout_id from payouts where merchant_id = ${'merchantId'} and agentpay_order_id = ${'id'}`

/** The time before which it must not be sent, according to its command. */
export const notBeforeOf = sql<PayoutKey, { notBefore: Instant | null }>`
  select not_before from payout_commands where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`

/** A row: a person sent it again, and payoutd has made no attempt since. */
export const resentSinceAttempt = sql<PayoutKey, { version: number }>`
  select version from history
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'} and to_state = 'queued' and reason = '${{ fragment: RESENT }}'
    and version > (
      select coalesce(max(version), 0) from history
      where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'} and to_state = 'submitting'
    )
  limit 1`

/** Another payout, of any merchant, that has the UTR. */
export const otherWithUtr = sql<{ merchantId: string; payoutId: string; utr: string }, PayoutKey>`
  select merchant_id, payout_id from payouts
  where utr is not null and upper(utr) = upper(${'utr'}) and (merchant_id, payout_id) <> (${'merchantId'}, ${'payoutId'})
  limit 1`

/** Payouts of a batch in these states, in the order in which they were accepted. */
export const openOfBatch = sql<{ merchantId: string; batchId: string; states: State[] }, FoundPayout>`
  select payout_id from payouts
  where merchant_id = ${'merchantId'} and batch_id = ${'batchId'} and state = any(${'states'}::text[])
  order by seq`
