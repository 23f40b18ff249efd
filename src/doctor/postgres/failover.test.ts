import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { durableDatabase } from '../../../test/durable-database.ts'
import { noteServer, serverIdentity } from '../../ledger/sql/server-identity.ts'
import { dependencyFaultOf } from '../../platform/dependency-fault.ts'
import { awaitedStandbys } from '../../platform/postgres/awaited-standbys.ts'
import { connectDatabase, sql, withSession } from '../../platform/postgres/postgres.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { eventually } from '../../platform/running/eventually.fixture.ts'
import { examine } from '../examine.ts'
import { standbySettings } from '../sql/failover.ts'
import { checkHistory, checkStandbys, failoverChecks } from './failover.ts'

const ADDRESSES = { database: 'db:5432/payouts', kafka: 'kafka:9092', registry: 'http://registry:8081' }
const THERE = { isAwaited: false, connected: 1 }
const server = { systemIdentifier: '7710948747581368855', timeline: 3n, databaseOid: 16_384n }

test('another history of the database is wrong until somebody has looked at it, and the finding says what to do', () => {
  const promoted = checkHistory(server, { ...server, timeline: 4n })
  assert.equal(promoted.state, 'wrong')
  assert.match(promoted.what, /from timeline 3 to 4/)
  assert.match('todo' in promoted ? promoted.todo : '', /payoutd recover/)
  assert.equal(checkHistory(server, { ...server, systemIdentifier: '1' }).state, 'wrong')
  const copy = checkHistory(server, { ...server, databaseOid: 16_999n })
  assert.match(copy.what, /a copy .* or a dump loaded there \(OID 16384, now 16999\)/)
  assert.match('todo' in copy ? copy.todo : '', /DATABASE_URL/)
  assert.equal(checkHistory(server, server).state, 'good')
  assert.equal(checkHistory(undefined, server).state, 'good')
})

test('what a commit waits for shows what a failover would cost', () => {
  assert.match(
    checkStandbys({ ...THERE, names: '', synchronousCommit: 'on' }).what,
    /can lose the last commits/,
  )
  assert.match(checkStandbys({ ...THERE, names: 'one', synchronousCommit: 'on' }).what, /loses no commit/)
  assert.match(
    checkStandbys({ ...THERE, names: 'one', synchronousCommit: 'remote_apply' }).what,
    /loses no commit/,
  )
  for (const names of ['one', '"one"', 'FIRST 1 (one)', 'ANY 2 (one, two)', '2 (one, two)'])
    assert.match(checkStandbys({ ...THERE, names, synchronousCommit: 'on' }).what, /loses no commit/)
  for (const names of ['one, two', '*', 'FIRST 1 (one, two)', 'any 1 (one, two)', '1(one,two)', 'ANY 1 (*)'])
    assert.match(checkStandbys({ ...THERE, names, synchronousCommit: 'on' }).what, /another loses commits/)
  for (const synchronousCommit of ['remote_write', 'local']) {
    assert.equal(checkStandbys({ ...THERE, names: 'one', synchronousCommit }).state, 'warning')
  }
})

test('a standby that is away, so that every commit waits, is wrong, and the finding says what to do', () => {
  for (const away of [
    { isAwaited: true, connected: 1 },
    { isAwaited: false, connected: 0 },
  ]) {
    const found = checkStandbys({ names: 'one', synchronousCommit: 'on', ...away })
    assert.equal(found.state, 'wrong')
    assert.match(found.what, /^every commit waits for one, /)
    assert.match('todo' in found ? found.todo : '', /synchronous_standby_names/)
  }
})

const writes = sql<object>`
  insert into ledger_server (system_identifier, timeline, database_oid) values ('1', 1, 1)
  on conflict (only_one) do update set since = now()`

test('a commit that waits for a standby is found on a real server, and its error is explained', async (t) => {
  const { url, db } = await durableDatabase(t)
  const standby = (names: string) =>
    withSession(url, async (session) => {
      await session.query(`alter system set synchronous_standby_names = '${names}'`)
      await session.query('select pg_reload_conf()')
    })
  const states = async () => [
    (await db.run(awaitedStandbys, {}))[0]?.names,
    checkStandbys((await db.run(standbySettings, {}))[0]).state,
  ]
  assert.deepEqual(await states(), [null, 'good'])
  await standby('one')
  const impatient = connectDatabase({
    url,
    connections: 1,
    applicationName: 'test',
    transactionTimeoutMs: 500,
  })
  t.after(() => impatient.close())
  let failure: unknown = null
  // PostgreSQL's processes read the setting one after the other: a commit before the last of them does not wait yet.
  await eventually('a commit to wait', async () => {
    failure = await impatient.run(writes, {}).then(
      () => null,
      (error: unknown) => error,
    )
    return failure !== null
  })
  assert.match(dependencyFaultOf(failure, ADDRESSES)?.todo ?? '', /a commit waits for a standby/)
  await eventually('it has waited for too long', async () => (await states())[0] === 'one')
  assert.equal((await states())[1], 'wrong')
})

test('both checks query a real server', async (t) => {
  const { db } = await freshDatabase(t)
  const [now] = await db.run(serverIdentity, {})
  assert.ok(now)
  await db.run(noteServer, now)
  const found = await examine(
    failoverChecks(db).map((check) => ({ ...check, needs: [] })),
    { addresses: {} as never, limitMs: 10_000, clock: systemClock, onFound: () => undefined },
  )
  assert.deepEqual(
    found.map(({ finding }) => finding.state),
    ['good', 'good'],
  )
})
