import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { silentLogger } from '../../platform/log.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { migrate } from './migrate.ts'

test('eight processes that migrate at once take turns, and only one migrates', async (t) => {
  const { url } = await freshDatabase(t, { migrated: false })
  const done = await Promise.all(Array.from({ length: 8 }, () => migrate(url, silentLogger)))
  assert.equal(done.filter((names) => names.length > 0).length, 1)
  assert.deepEqual(await migrate(url, silentLogger), [])
})

test('history is partitioned by month, and months past retention are dropped', async (t) => {
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
  await Promise.all([1, 2, 3].map(() => db.run(keep, { months: null })))
  assert.deepEqual(await partitions(), ['history_2020_01', ...before])
  assert.deepEqual(await db.run(keep, { months: 12 }), [{ left: true }])
  assert.deepEqual(await partitions(), before)
  assert.deepEqual(await db.run(keep, { months: 12 }), [{ left: false }])
})

const keep = sql<{ months: number | null }, { left: boolean }>`
  select keep_history(${'months'}::int) as left`
const forgetLatest = sql<object>`drop table history_${{ fragment: nextMonth() }}`
const insertEntry = sql<object>`
  insert into history (merchant_id, payout_id, to_state, source) values ('acme', 'p', 'queued', 'COMMAND')`
const strayEntry = sql<object>`
  insert into history (merchant_id, payout_id, to_state, source, at)
  values ('acme', 'p', 'queued', 'COMMAND', date_trunc('month', now()) + interval '1 month')`
const readAll = sql<object, { count: number }>`select count(*)::int as count from history`
const strays = sql<object, { count: number }>`select count(*)::int as count from history_default`

/** `2026_12`, in UTC. */
function nextMonth(): string {
  const now = new Date()
  const first = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1))
  return first.toISOString().slice(0, 7).replace('-', '_')
}

test('during a long read of the history, a due partition makes nobody wait, and is created later', async (t) => {
  const { db } = await freshDatabase(t)
  await db.run(forgetLatest, {})
  await db.run(strayEntry, {})
  await db.transaction('test', async (reader) => {
    await reader.run(readAll, {})
    const kept = db.run(keep, { months: null })
    for (let i = 0; i < 20; i++) {
      const began = performance.now()
      await db.run(insertEntry, {})
      assert.ok(performance.now() - began < 1_000, 'an insert waited')
    }
    assert.deepEqual(await kept, [{ left: true }])
  })
  assert.deepEqual(await db.run(strays, {}), [{ count: 1 }])
  assert.deepEqual(await db.run(keep, { months: null }), [{ left: false }])
  assert.deepEqual(await db.run(strays, {}), [{ count: 0 }])
  assert.deepEqual(await db.run(readAll, {}), [{ count: 21 }])
})
