import { sql } from '../../../platform/postgres/postgres.ts'

type DeclaredBatch = {
  merchantIds: string[]
  batchIds: string[]
  rows: number[]
  amounts: bigint[]
  refused: number[]
  fileHashes: string[]
  declaredAts: number[]
}

/** A file that is sent a second time declares nothing new. */
export const declareBatches = sql<DeclaredBatch>`
  insert into batches (merchant_id, batch_id, rows, amount, refused, file_hash, declared_at)
  select merchant_id, batch_id, rows, amount, refused, file_hash, to_timestamp(declared_at / 1000)
  from unnest(${'merchantIds'}::text[], ${'batchIds'}::text[], ${'rows'}::int[], ${'amounts'}::bigint[],
              ${'refused'}::int[], ${'fileHashes'}::text[], ${'declaredAts'}::float8[])
    as d (merchant_id, batch_id, rows, amount, refused, file_hash, declared_at)
  on conflict do nothing`
