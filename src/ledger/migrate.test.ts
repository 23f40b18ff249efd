import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { silentLogger } from '../platform/log.ts'
import { sql } from '../platform/postgres.ts'
import { migrate } from './migrate.ts'

test('eight processes that migrate at once take turns, and only one has something to do', async (t) => {
  const { url } = await freshDatabase(t, { migrated: false })
  const done = await Promise.all(Array.from({ length: 8 }, () => migrate(url, silentLogger)))
  assert.equal(done.filter((names) => names.length > 0).length, 1)
  assert.deepEqual(await migrate(url, silentLogger), [])
})

test('history is kept by month, and months beyond what is kept are dropped', async (t) => {
  const { db } = await freshDatabase(t)
  const partitions = async () => {
    const rows = await db.run(
      sql<object, { name: string }>`
        select relname as name from pg_inherits join pg_class on pg_class.oid = inhrelid
        where inhparent = 'history'::regclass order by 1`,
      {},
    )
    return rows.map(({ name }) => name)
  }
  const before = await partitions()
  assert.equal(before.length, 4)
  await db.run(
    sql<object>`create table history_2020_01 partition of history for values from ('2020-01-01') to ('2020-02-01')`,
    {},
  )
  const keep = sql<{ months: number | null }>`select keep_history(${'months'}::int)`
  await Promise.all([1, 2, 3].map(() => db.run(keep, { months: null })))
  assert.deepEqual(await partitions(), ['history_2020_01', ...before])
  await db.run(keep, { months: 12 })
  assert.deepEqual(await partitions(), before)
})
