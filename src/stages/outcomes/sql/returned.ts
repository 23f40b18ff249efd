import type { PayoutKey } from '../../../domain/identifiers.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

/** Those of these payouts whose money came back, as a person has confirmed. */
export const returnedOf = sql<{ payouts: readonly PayoutKey[] }, PayoutKey>`
  select r.merchant_id, r.payout_id
  from ${{ rows: 'payouts', columns: { merchantId: 'text', payoutId: 'text' } }} named
  cross join lateral (
    select merchant_id, payout_id from reversals
    where reversals.merchant_id = named.merchant_id and reversals.payout_id = named.payout_id
    offset 0
  ) r`
