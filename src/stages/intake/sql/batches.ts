import type { BatchDeclaration } from '../../../domain/commands/command.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

/**
 * A file that comes a second time declares more rows, if rows that the settings refused the first time are valid now. When it
 * came first counts.
 */
export const declareBatches = sql<{ batches: readonly BatchDeclaration[] }>`
  insert into batches (merchant_id, batch_id, rows, amount, refused, file_hash, declared_at)
  select distinct on (merchant_id, batch_id, file_hash)
    merchant_id, batch_id, rows, amount, refused, file_hash,
    to_timestamp(min(declared_at) over (partition by merchant_id, batch_id, file_hash) / 1000)
  from ${{
    rows: 'batches',
    columns: {
      ...{ merchantId: 'text', batchId: 'text', rows: 'int', amount: 'bigint', refused: 'int' },
      ...{ fileHash: 'text', declaredAt: 'float8' },
    },
  }} d
  order by merchant_id, batch_id, file_hash, rows desc
  on conflict (merchant_id, batch_id, file_hash) do update
  set rows = excluded.rows, amount = excluded.amount, refused = excluded.refused
  where excluded.rows > batches.rows`
