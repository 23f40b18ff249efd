import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { sql } from '../platform/postgres.ts'
import { demandSchema, fitOf } from './schema.ts'

const OURS = ['0001_a', '0002_b']

test('a payoutd works on its own tables and on newer ones that let it, and on no others', () => {
  const fit = (done: string[], oldest: string | null) => fitOf(OURS, { done, oldest })
  assert.equal(fit(OURS, null).kind, 'fits')
  const older = fit(['0001_a'], '0001_a')
  assert.deepEqual(
    [older.kind, older.what, older.todo],
    ['differs', 'the database lacks the migrations 0002_b', 'run payoutd migrate'],
  )
  assert.equal(fit([...OURS, '0003_c'], '0002_b').kind, 'newer')
  for (const oldest of ['0003_c', null]) {
    const newer = fit([...OURS, '0003_c'], oldest)
    assert.equal(newer.kind, 'differs')
    assert.match(newer.what, /does not know: 0003_c$/)
  }
})

const runLater = sql<object>`insert into migrations (name, run_on) values ('9999_later', now())`
const breakOlder = sql<object>`update compatibility set oldest = '9999_later'`

test('tables that a newer payoutd has migrated are refused as soon as they say that older ones do not work', async (t) => {
  const { db } = await freshDatabase(t)
  await demandSchema(db)
  await db.run(runLater, {})
  await demandSchema(db)
  await db.run(breakOlder, {})
  await assert.rejects(
    demandSchema(db),
    /does not know: 9999_later: use the payoutd that ran them, or a newer one/,
  )
})

test('tables that were never made are refused with what to do', async (t) => {
  const { db } = await freshDatabase(t, { migrated: false })
  await assert.rejects(demandSchema(db), /lacks the migrations 0001_ledger, .*: run payoutd migrate$/)
})
