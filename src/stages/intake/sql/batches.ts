import { sql } from '../../../platform/postgres/postgres.ts'
import type { BatchDeclaration } from '../parse-command.ts'

/** A file that comes a second time declares nothing new. */
export const declareBatches = sql<{ batches: readonly BatchDeclaration[] }>`
  insert into batches (merchant_id, batch_id, rows, amount, refused, file_hash, declared_at)
  select merchant_id, batch_id, rows, amount, refused, file_hash, to_timestamp(declared_at / 1000)
  from ${{
    rows: 'batches',
    columns: {
      ...{ merchantId: 'text', batchId: 'text', rows: 'int', amount: 'bigint', refused: 'int' },
      ...{ fileHash: 'text', declaredAt: 'float8' },
    },
  }} d
  on conflict do nothing`
