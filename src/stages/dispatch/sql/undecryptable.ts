import type { PayoutKey } from '../../../domain/identifiers.ts'
import type { Payout } from '../../../domain/payout/payout.ts'

import { payoutColumns } from '../../../ledger/sql/columns.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

/** Payouts that wait for a key, in primary-key order, after the given one, with their encrypted details. */
export const payoutsAwaitingKey = sql<PayoutKey & { limit: number }, PayoutKey & { sealed: Buffer | null }>`
  select merchant_id, payout_id,
    (select sealed from payout_commands c
     where c.merchant_id = payouts.merchant_id and c.payout_id = payouts.payout_id) as sealed
  from payouts
  where awaits_key and (merchant_id, payout_id) > (${'merchantId'}, ${'payoutId'})
  order by merchant_id, payout_id
  limit ${'limit'}`

/** Locks those of these payouts of one merchant that still wait for a key. */
export const lockAwaitingKey = sql<{ merchantId: string; payoutIds: string[] }, Payout>`
  select ${payoutColumns}
  from (select * from unnest(${'payoutIds'}::text[]) as named (payout_id) order by 1) wanted
  cross join lateral (
    select * from payouts
    where payouts.merchant_id = ${'merchantId'} and payouts.payout_id = wanted.payout_id
      and awaits_key
    for update
  ) p`
