import type { State } from '../../../domain/payout/states.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

/** Of what was published of payouts that the ledger lacks: the next payouts of a merchant, and how each was told of last. */
export const publishedOnly = sql<
  { merchantId: string; after: string; limit: number },
  { payoutId: string; orderNo: string | null; state: State; version: number; ended: boolean }
>`
  select payout_id, max(order_no) as order_no, (array_agg(state order by version desc))[1] as state,
    max(version) as version, bool_or(state in ('paid', 'failed', 'rejected', 'cancelled')) as ended
  from published_messages
  where merchant_id = ${'merchantId'} and payout_id > ${'after'}
  group by payout_id order by payout_id limit ${'limit'}`
