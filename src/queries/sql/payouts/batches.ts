import type { Instant } from '../../../domain/instant.ts'
import type { Paise } from '../../../domain/money.ts'
import { sumOfPaise } from '../../../ledger/sql/estimated-fee.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

type BatchRow = { merchantId: string; batchId: string }

/** What a file of a batch declared before its rows arrived. */
export type Declared = { rows: number; amount: Paise; declaredAt: Instant }

/** The earliest first. */
export const declaredOf = sql<BatchRow & { limit: number }, Declared>`
  select rows, amount, declared_at from batches
  where merchant_id = ${'merchantId'} and batch_id = ${'batchId'} order by declared_at limit ${'limit'}`

/** One row, over all files of a batch. */
export const declaredInAll = sql<BatchRow, { files: number; rows: bigint; amount: Paise }>`
  select count(*)::int as files, coalesce(sum(rows), 0)::bigint as rows,
    ${sumOfPaise('amount')} as amount
  from batches where merchant_id = ${'merchantId'} and batch_id = ${'batchId'}`

/** Over a page of the batch's payouts, in any state. */
export const pageOfBatch = sql<
  BatchRow & { after: string; limit: number },
  { last: string | null; count: number; amount: Paise }
>`
  select max(seq)::text as last, count(*)::int as count,
    ${sumOfPaise('amount')} as amount
  from (
    select seq, amount from payouts
    where merchant_id = ${'merchantId'} and batch_id = ${'batchId'} and seq > ('0' || ${'after'})::bigint
    order by seq limit ${'limit'}
  ) page`
