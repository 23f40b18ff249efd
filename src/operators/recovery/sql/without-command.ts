import type { State } from '../../../domain/payout/states.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

/** The next payouts of a merchant that were published and that the ledger lacks, each with its last published state. */
export const publishedOnly = sql<
  { merchantId: string; after: string; limit: number },
  { payoutId: string; orderNo: string | null; state: State; version: number; ended: boolean }
>`
  select payout_id, max(order_no) as order_no, (array_agg(state order by version desc))[1] as state,
    max(version) as version, bool_or(state in ('paid', 'failed', 'rejected', 'cancelled')) as ended
  from published_messages
  where merchant_id = ${'merchantId'} and payout_id > ${'after'}
  group by payout_id order by payout_id limit ${'limit'}`
