import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { silentLogger } from '../../platform/log.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { migrate } from '../tables/migrate.ts'
import { keepCallback } from './sql/kept-callbacks.ts'

const fillUp = sql<object>`
  insert into kept_callbacks (merchant_id, kind, order_no, query_hash, sealed)
  select 'acme', 'payout', 'o' || n, '', '\\x01' from generate_series(1, 1000) n`
const rowsFound = sql<object, { rows: bigint }>`
  select sum(pg_stat_get_xact_tuples_returned(oid))::bigint as rows
  from pg_class where relnamespace = 'public'::regnamespace`

test('a callback about an unknown order reads none of the kept callbacks', async (t) => {
  // A new database: a reused one has statistics of earlier tests, and Postgres chooses other plans.
  const { db, url } = await freshDatabase(t, { migrated: false })
  await migrate(url, silentLogger)
  await db.run(fillUp, {})
  const key = { merchantId: 'acme', kind: 'payout', orderNo: 'made-up', queryHash: Buffer.alloc(1) } as const
  const bounds = { mostOfOrder: 8, mostOfMerchant: 20_000, most: 100_000 }
  const read = await db.transaction('test', async (tx) => {
    const rows = async () => Number((await tx.run(rowsFound, {}))[0]?.rows)
    const before = await rows()
    const [kept] = await tx.run(keepCallback, { ...key, ...bounds, sealed: Buffer.alloc(1) })
    assert.deepEqual(kept, { isKnown: false, isKept: false })
    return (await rows()) - before
  })
  assert.ok(read < 10, `${read} rows`)
})
