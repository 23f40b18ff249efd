import { sql } from '../../../platform/postgres/postgres.ts'

/** One row. Each file of a batch declares its own payouts. */
export const sizeOfBatch = sql<
  { merchantId: string; batchId: string },
  { taken: bigint; paid: bigint; files: number; declared: bigint | null }
>`
  select taken, paid, files, declared
  from (
    select count(*)::int as files, sum(rows)::bigint as declared from batches
    where merchant_id = ${'merchantId'} and batch_id = ${'batchId'}
  ) declarations, (
    select count(*) as taken, count(*) filter (where state = 'paid') as paid
    from payouts where merchant_id = ${'merchantId'} and batch_id = ${'batchId'}
  ) here`
