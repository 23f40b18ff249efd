import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { silentLogger } from '../../platform/log.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { migrate } from './migrate.ts'
import { migrateLedger } from './migrate-all.ts'
import { migrationsDir, ourMigrations } from './migrations.ts'
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

const compatibility = sql<object, { oldest: string }>`select oldest from compatibility`

test('each migration says whether older code works on it, and if not, lets no older code in', async (t) => {
  const { url, db } = await freshDatabase(t, { migrated: false })
  for (const name of await ourMigrations()) {
    const text = await readFile(path.join(migrationsDir, `${name}.sql`), 'utf8')
    const [, works] = /^-- Older code: (works|does not work)\n/.exec(text) ?? []
    assert.ok(
      works,
      `the first line of ${name} is not "-- Older code: works" or "-- Older code: does not work"`,
    )
    await migrate(url, silentLogger, name)
    const [{ oldest } = { oldest: '' }] = await db.run(compatibility, {})
    assert.equal(oldest === name, works === 'does not work', `${name} leaves ${oldest} the oldest`)
  }
})

const runLater = sql<object>`insert into migrations (name, run_on) values ('9999_later', now())`
const breakOlder = sql<object>`update compatibility set oldest = '9999_later'`

test('payoutd refuses tables that a newer payoutd has migrated once they say that older code does not work', async (t) => {
  const { url, db } = await freshDatabase(t)
  await demandSchema(db)
  await db.run(runLater, {})
  await demandSchema(db)
  await migrateLedger({ databaseUrl: url, topicPrefix: '' }, silentLogger)
  await db.run(breakOlder, {})
  const refused = /does not know: 9999_later: use the payoutd that ran them, or a newer one/
  await assert.rejects(demandSchema(db), refused)
  await assert.rejects(migrateLedger({ databaseUrl: url, topicPrefix: '' }, silentLogger), refused)
})

test('payoutd refuses a database without tables, and says what to do', async (t) => {
  const { db } = await freshDatabase(t, { migrated: false })
  await assert.rejects(demandSchema(db), /lacks the migrations 0001_ledger.*: run payoutd migrate$/)
})
