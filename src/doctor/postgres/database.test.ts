import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import type { TestDatabase } from '../../../test/database.ts'
import { durableDatabase } from '../../../test/durable-database.ts'
import { connectDatabase, type Database, sql } from '../../platform/postgres/postgres.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { examine } from '../examine.ts'
import { checkServer, databaseChecks } from './database.ts'

const SERVER = {
  version: 180_004,
  versionText: '18.4',
  standby: false,
  readOnly: false,
  encoding: 'UTF8',
  fsync: 'on',
}

async function findings(db: Database) {
  const found = await examine(databaseChecks(db, 'db:5432/payouts', systemClock), {
    addresses: { database: 'db:5432/payouts', kafka: '', registry: '' },
    limitMs: 10_000,
    clock: systemClock,
    onFound: () => undefined,
  })
  return new Map(found.map(({ name, finding }) => [name, finding]))
}

const ours = await durableDatabase({ after })

test('a migrated database passes every check', async () => {
  const states = [...(await findings(ours.db))].map(([name, { state }]) => [name, state])
  assert.deepEqual(states, [
    ['database', 'good'],
    ['database clock', 'good'],
    ['migrations', 'good'],
    ['database rights', 'good'],
  ])
})

test('a database without tables calls for migrate', async (t) => {
  const { db } = await durableDatabase(t, { migrated: false })
  const finding = (await findings(db)).get('migrations')
  assert.match(finding?.what ?? '', /lacks the migrations 0001_ledger/)
  assert.ok(finding?.state === 'wrong' && finding.todo === 'run payoutd migrate')
})

const statement = (text: string) => sql<object>([text] as unknown as TemplateStringsArray)

/** Does `work` as a user who may read and write every table except `payouts`, which this user may only read and update. */
async function asLimitedUser({ url, db }: TestDatabase, work: (limited: Database) => Promise<void>) {
  const user = `limited_${randomUUID().replaceAll('-', '')}`
  await db.run(statement(`create role ${user} login password 'limited'`), {})
  await db.run(
    statement(`grant select, insert, update, delete on all tables in schema public to ${user}`),
    {},
  )
  await db.run(statement(`revoke insert, delete on payouts from ${user}`), {})
  const limitedUrl = new URL(url)
  limitedUrl.username = user
  limitedUrl.password = 'limited'
  const limited = connectDatabase({ url: limitedUrl.href, connections: 1, applicationName: 'payoutd-test' })
  try {
    await work(limited)
  } finally {
    await limited.close()
    await db.run(statement(`drop owned by ${user}`), {})
    await db.run(statement(`drop role ${user}`), {})
  }
}

test('missing rights are named, table by table', async () => {
  await asLimitedUser(ours, async (limited) => {
    const finding = (await findings(limited)).get('database rights')
    assert.equal(
      finding?.what,
      "payoutd's database user lacks execute on keep_history; delete, insert on payouts",
    )
  })
})

test('a server that could lose a commit, cannot be written or is too old is wrong', () => {
  assert.equal(checkServer(SERVER, 'db').state, 'good')
  assert.match(checkServer({ ...SERVER, fsync: 'off' }, 'db').what, /can lose commits/)
  assert.match(checkServer({ ...SERVER, standby: true }, 'db').what, /standby/)
  assert.match(checkServer({ ...SERVER, readOnly: true }, 'db').what, /refuses writes/)
  assert.match(checkServer({ ...SERVER, version: 170_006, versionText: '17.6' }, 'db').what, /too old/)
  assert.match(checkServer({ ...SERVER, encoding: 'SQL_ASCII' }, 'db').what, /SQL_ASCII/)
})
