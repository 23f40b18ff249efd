import type { Instant } from '../../payout/instant.ts'
import type { Paise } from '../../payout/money.ts'
import { sql } from '../../platform/postgres.ts'

type Batch = { merchantId: string; batchId: string }

/** What a file under a batch said of itself before its rows came. */
export type Declared = { rows: number; amount: Paise; declaredAt: Instant }

/** The earliest first. */
export const declaredOf = sql<Batch, Declared>`
  select rows, amount, declared_at from batches
  where merchant_id = ${'merchantId'} and batch_id = ${'batchId'} order by declared_at limit 20`

/** Over a page of the batch's payouts, whatever became of them. */
export const pageOfBatch = sql<
  Batch & { after: string; limit: number },
  { last: string | null; count: number; amount: Paise }
>`
  select max(seq)::text as last, count(*)::int as count, coalesce(sum(amount), 0)::bigint as amount
  from (
    select seq, amount from payouts
    where merchant_id = ${'merchantId'} and batch_id = ${'batchId'} and seq > ('0' || ${'after'})::bigint
    order by seq limit ${'limit'}
  ) page`
