import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { silentLogger } from '../../platform/log.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { migrate } from './migrate.ts'
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

/** Migrations from before that rule, which therefore let no older code in any more. */
const SILENT_UNTIL = '0050_newest_only'
const compatibility = sql<object, { oldest: string }>`select oldest from compatibility`

test('each migration says whether older code works on it, and if not, lets no older code in', async (t) => {
  const { url, db } = await freshDatabase(t, { migrated: false })
  const names = (await ourMigrations()).filter((name) => name >= SILENT_UNTIL)
  for (const name of names) {
    const text = await readFile(path.join(migrationsDir, `${name}.sql`), 'utf8')
    const [, works] = /^-- Up Migration\n-- Older code: (works|does not work)$/m.exec(text) ?? []
    assert.ok(
      works,
      `${name} does not say "-- Older code: works", or "does not work", below "-- Up Migration"`,
    )
    await migrate(url, silentLogger, name)
    const [{ oldest } = { oldest: '' }] = await db.run(compatibility, {})
    assert.equal(oldest === name, works === 'does not work', `${name} leaves ${oldest} the oldest`)
  }
})

const runLater = sql<object>`insert into migrations (name, run_on) values ('9999_later', now())`
const breakOlder = sql<object>`update compatibility set oldest = '9999_later'`

test('payoutd refuses tables that a newer payoutd has migrated once they say that older code does not work', async (t) => {
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

test('payoutd refuses a database without tables, and says what to do', async (t) => {
  const { db } = await freshDatabase(t, { migrated: false })
  await assert.rejects(demandSchema(db), /lacks the migrations 0001_ledger, .*: run payoutd migrate$/)
})
