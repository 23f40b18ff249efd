import { sql } from '../../platform/postgres/postgres.ts'

/** One row. Each file of a batch declares its own payouts. */
export const sizeOfBatch = sql<
  { merchantId: string; batchId: string },
  { taken: bigint; declared: bigint | null }
>`
  select
    (select count(*) from payouts where merchant_id = ${'merchantId'} and batch_id = ${'batchId'}) as taken,
    (select sum(rows)::bigint from batches
     where merchant_id = ${'merchantId'} and batch_id = ${'batchId'}) as declared`
