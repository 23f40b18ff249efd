import type { Instant } from '../../../domain/instant.ts'
import type { Payout } from '../../../domain/payout/payout.ts'
import { payoutColumns } from '../../../ledger/sql/columns.ts'
import { sql } from '../../../platform/postgres/postgres.ts'
import { enteredAt } from './entered-at.ts'

export type InReview = Payout & { since: Instant; rowNumber: number | null }

/**
 * Payouts that wait for a person, the longest first. The history of the last transition may have expired; a payout in review does
 * not change, so its row was last stored at that time.
 */
export const payoutsInReview = sql<{ merchantId: string; limit: number }, InReview & { sealed: Buffer }>`
  select ${payoutColumns},
    (select row_number from payout_commands c where c.merchant_id = p.merchant_id and c.payout_id = p.payout_id),
    (select sealed from payout_commands c where c.merchant_id = p.merchant_id and c.payout_id = p.payout_id),
    coalesce(${enteredAt}, p.updated_at) as since
  from payouts p
  where p.merchant_id = ${'merchantId'} and p.in_review
  order by since, p.payout_id
  limit ${'limit'}`
