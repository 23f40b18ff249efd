import { sql } from '../../platform/postgres/postgres.ts'

/** One row. Each file of a batch declares its own payouts. */
export const sizeOfBatch = sql<
  { merchantId: string; batchId: string },
  { taken: bigint; paid: bigint; declared: bigint | null }
>`
  select taken, paid,
    (select sum(rows)::bigint from batches
     where merchant_id = ${'merchantId'} and batch_id = ${'batchId'}) as declared
  from (
    select count(*) as taken, count(*) filter (where state = 'paid') as paid
    from payouts where merchant_id = ${'merchantId'} and batch_id = ${'batchId'}
  ) here`
