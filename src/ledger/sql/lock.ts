import type { PayoutKey } from '../../domain/identifiers.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import { type Fragment, sql } from '../../platform/postgres/postgres.ts'
import { payoutColumns } from './columns.ts'

/**
 * Locks one payout after the other, in the order of `wanted`. A subquery, because Postgres could run a join from its other side
 * (docs/decisions/0005).
 */
const lockWanted: Fragment = {
  fragment: `cross join lateral (
    select * from payouts
    where payouts.merchant_id = wanted.merchant_id and payouts.payout_id = wanted.payout_id
    for update
  ) p`,
}

/**
 * Locks payouts by their order numbers, always in the order of the primary key: two batches that share payouts wait for one
 * another instead of deadlocking. Unknown order numbers return no row.
 */
export const lockByOrder = sql<{ orders: readonly { merchantId: string; mchOrderNo: string }[] }, Payout>`
  select ${payoutColumns}
  from (
    select merchant_id,
      (select payout_id from payouts
       where payouts.merchant_id = named.merchant_id and payouts.order_no = named.mch_order_no)
    from ${{ rows: 'orders', columns: { merchantId: 'text', mchOrderNo: 'text' } }} named
    order by 1, 2
  ) wanted
  ${lockWanted}`

/** The same by payoutId. */
export const lockById = sql<{ payouts: readonly PayoutKey[] }, Payout>`
  select ${payoutColumns}
  from (
    select * from ${{ rows: 'payouts', columns: { merchantId: 'text', payoutId: 'text' } }} named
    order by 1, 2
  ) wanted
  ${lockWanted}`
