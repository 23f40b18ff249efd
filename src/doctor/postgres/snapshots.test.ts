import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { connectDatabase, sql, withSession } from '../../platform/postgres/postgres.ts'
import { type HeldSnapshot, heldSnapshots, seesEverySession } from '../../queries/sql/snapshots.ts'
import { checkSnapshots } from './snapshots.ts'

const DUMP: HeldSnapshot = {
  ...{ kind: 'session', name: '4711', role: 'backup', application: 'pg_dump' },
  ...{ seconds: 2_580, transactions: 90_000 },
}

test('whoever keeps a snapshot for long is named, with what it slows and what to do', () => {
  const found = checkSnapshots(
    [DUMP, { ...DUMP, kind: 'prepared transaction', name: 'two-phase', application: null }],
    true,
  )
  assert.equal(found.state, 'warning')
  assert.match(
    found.what,
    /^old snapshots of the database: session 4711 \(user backup, pg_dump\) for 43 min; .*two-phase \(user backup\) for/,
  )
  assert.match(found.what, /sending becomes slower for every merchant/)
  assert.match('todo' in found ? found.todo : '', /pg_terminate_backend/)
})

test('a snapshot of some minutes is no reason to warn', () => {
  assert.equal(checkSnapshots([{ ...DUMP, seconds: 590 }], true).state, 'good')
})

test("a standby's snapshot, whose age the server does not report, is measured in transactions since", () => {
  const slot: HeldSnapshot = {
    ...{ kind: 'replication slot', name: 'standby_1', role: null, application: null },
    ...{ seconds: null, transactions: 99_999 },
  }
  assert.equal(checkSnapshots([slot], true).state, 'good')
  assert.match(
    checkSnapshots([{ ...slot, transactions: 250_000 }], true).what,
    /^old snapshots of the database: replication slot standby_1 for 250000 transactions\./,
  )
})

const statement = (text: string) => sql<object>([text] as unknown as TemplateStringsArray)

test("a role without superuser's rights finds who keeps a snapshot, and reports that it cannot see its age", async (t) => {
  const { db, url } = await freshDatabase(t)
  const user = `limited_${randomUUID().replaceAll('-', '')}`
  await db.run(statement(`create role ${user} login password 'limited'`), {})
  const limited = connectDatabase({
    url: Object.assign(new URL(url), { username: user, password: 'limited' }).href,
    connections: 1,
    applicationName: 'payoutd-test',
  })
  try {
    await withSession(url, async (dump) => {
      await dump.query('begin isolation level repeatable read')
      const { rows } = await dump.query('select pg_backend_pid()::text as pid')
      const seen = async (by: typeof db) =>
        (await by.run(heldSnapshots, {})).find(({ name }) => name === rows[0].pid)?.seconds
      assert.ok(typeof (await seen(db)) === 'number')
      assert.equal(await seen(limited), null)
    })
    const [{ sees } = { sees: true }] = await limited.run(seesEverySession, {})
    assert.equal(sees, false)
    assert.match(checkSnapshots([], sees).what, /grant it pg_read_all_stats/)
  } finally {
    await limited.close()
    await db.run(statement(`drop role ${user}`), {})
  }
})
