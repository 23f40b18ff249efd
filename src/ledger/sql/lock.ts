import type { Payout } from '../../payout/payout.ts'
import { sql } from '../../platform/postgres.ts'
import { payoutColumns } from './columns.ts'

/**
 * Locks payouts by their order numbers, always in the order of the primary key: two batches that share
 * payouts wait for one another instead of deadlocking. Unknown order numbers give no row.
 */
export const lockByOrder = sql<{ merchantIds: string[]; orderNos: string[] }, Payout>`
  select ${payoutColumns}
  from unnest(${'merchantIds'}::text[], ${'orderNos'}::text[]) as wanted (merchant_id, order_no)
  join payouts p using (merchant_id, order_no)
  order by p.merchant_id, p.payout_id
  for update of p`

/** The same by payoutId. */
export const lockById = sql<{ merchantIds: string[]; payoutIds: string[] }, Payout>`
  select ${payoutColumns}
  from unnest(${'merchantIds'}::text[], ${'payoutIds'}::text[]) as wanted (merchant_id, payout_id)
  join payouts p using (merchant_id, payout_id)
  order by p.merchant_id, p.payout_id
  for update of p`
