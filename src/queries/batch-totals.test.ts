import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { paise } from '../domain/money.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { declareBatches } from '../stages/intake/sql/batches.ts'
import { batchTotals, batchTotalsText } from './batch-totals.ts'

const declare = sql<{ files: number }>`
  insert into batches (merchant_id, batch_id, rows, amount, refused, file_hash, declared_at)
  select 'acme', 'nov', n, 100 * n, 0, n::text, timestamptz '2026-11-21T12:00:00Z' + n * interval '1 minute'
  from generate_series(1, ${'files'}::int) n on conflict do nothing`

test('the totals of a batch cover all its files, and list the first 20 one by one', async (t) => {
  const { db } = await freshDatabase(t)
  const batch = { merchantId: 'acme', batchId: 'nov' }
  const totals = async () => batchTotalsText(await batchTotals(db, batch)) ?? ''
  assert.equal(await totals(), '')
  await db.run(declare, { files: 2 })
  assert.equal(
    await totals(),
    'declared 3 of ₹3.00 in 2 files (a row that is in several files, such as a corrected one, counts in each): 1 of ₹1.00 (2026-11-21 12:01:00.000Z), 2 of ₹2.00 (2026-11-21 12:02:00.000Z), here 0 of ₹0.00',
  )
  await db.run(declare, { files: 23 })
  const { declared } = await batchTotals(db, batch)
  assert.deepEqual([declared.rows, declared.amount, declared.first.length], [276n, 27_600n, 20])
  assert.match(
    await totals(),
    /^declared 276 of ₹276\.00 in 23 files \([^)]+\): 1 of .*, 20 of ₹20\.00 \([^)]+\) and 3 more, here 0 of ₹0\.00$/,
  )
})

test('a file that comes again with more valid rows declares these, since when it first came', async (t) => {
  const { db } = await freshDatabase(t)
  const batch = { merchantId: 'acme', batchId: 'nov' }
  const file = (rows: number, refused: number, day: number) => ({
    ...{ ...batch, rows, refused, amount: paise(BigInt(rows) * 100n) },
    ...{ fileHash: 'ab'.repeat(32), declaredAt: Date.UTC(2026, 10, day) },
  })
  const [first, again] = [file(2, 1, 21), file(3, 0, 22)]
  const other = { ...batch, batchId: 'dec' }
  for (const batches of [[first], [again], [first]]) await db.run(declareBatches, { batches })
  const atOnce = [again, first].map((each) => ({ ...each, ...other }))
  await db.run(declareBatches, { batches: atOnce })
  for (const each of [batch, other]) {
    const text = batchTotalsText(await batchTotals(db, each)) ?? ''
    assert.match(text, /^declared 3 of ₹3\.00 \(2026-11-21 [^)]*\), here 0/)
  }
})

const declareHuge = sql<object>`
  insert into batches (merchant_id, batch_id, rows, amount, refused, file_hash, declared_at)
  select 'acme', 'nov', 1, 9000000000000000000, 0, n::text, now() from generate_series(1, 2) n`

test('files whose amounts no sum can hold are shown all the same', async (t) => {
  const { db } = await freshDatabase(t)
  await db.run(declareHuge, {})
  const { declared } = await batchTotals(db, { merchantId: 'acme', batchId: 'nov' })
  assert.equal(declared.amount, 2n ** 63n - 1n)
})
