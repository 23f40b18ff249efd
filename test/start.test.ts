import assert from 'node:assert/strict'
import { createSecretKey, randomBytes } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { anyFreePort } from '../devkit/local/servers/processes/ports.ts'
import { startPayoutd } from '../src/app/start.ts'
import { payoutdAlone } from '../src/cli/cli.fixture.ts'
import { readConfig } from '../src/config/config.ts'
import { command } from '../src/domain/commands/command.fixture.ts'
import { silentLogger } from '../src/platform/log.ts'
import { sql, withSession } from '../src/platform/postgres/postgres.ts'
import { eventually } from '../src/platform/running/eventually.fixture.ts'
import { freshDatabase } from './database.ts'
import { accepted, payoutsOf, registered, testEnvironment, testLedger, upsertMerchant } from './ledger.ts'

/** Locks these rows from when it resolves until the test calls the returned function. */
async function lockRows(t: TestContext, url: string, rows: string): Promise<() => Promise<void>> {
  const { promise: isOver, resolve: end } = Promise.withResolvers<void>()
  const { promise: locked, resolve: tell } = Promise.withResolvers<void>()
  const session = withSession(url, async (session) => {
    await session.query('begin')
    await session.query(`select from ${rows} for update`)
    tell()
    await isOver
    await session.query('rollback')
  })
  const release = () => {
    end()
    return session
  }
  t.after(release)
  await locked
  return release
}

const waiting = sql<object, { count: number }>`
  select count(*)::int as count from pg_stat_activity
  where datname = current_database() and wait_event_type = 'Lock'`

const putAside = sql<object>`
  update payouts set state = 'held', reason = 'details-sealed', ready = false where payout_id like 'sealed-%'`

test('payoutd is up, and can be stopped, while payouts that waited for a key are still to be tried', async (t) => {
  const { ledger, config } = await testLedger(t)
  const sealing = {
    current: 2,
    keys: new Map([...config.sealing.keys, [2, createSecretKey(randomBytes(32))]]),
  }
  await accepted(ledger, { ...config, sealing }, [command('sealed-1'), command('sealed-2')])
  await ledger.db.run(putAside, {})
  const release = await lockRows(t, config.databaseUrl, 'payouts')
  const payoutd = await startPayoutd({ ...config, sealing }, new Set(['dispatch']), silentLogger)
  t.after(() => payoutd.stop())
  await eventually('them to be tried', async () => (await ledger.db.run(waiting, {}))[0]?.count === 1)
  await eventually('it to be ready', async () => (await fetch(`${payoutd.internalUrl}/readyz`)).ok)
  await release()
  await eventually('each to be queued again', async () =>
    (await payoutsOf(ledger)).every(({ version }) => version >= 2),
  )
  await payoutd.stop()
  assert.deepEqual(payoutd.unfinished, [])
})

test('a start that waits reports that it is alive and starting, and refuses what it cannot answer yet', async (t) => {
  const { ledger, config } = await testLedger(t)
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: '', feeEstimate: 0n })
  const release = await lockRows(t, config.databaseUrl, 'merchants')
  const internalAt = { host: '127.0.0.1', port: await anyFreePort() }
  const starting = startPayoutd({ ...config, internalAt }, new Set(['dispatch']), silentLogger)
  t.after(async () => (await starting).stop())
  await eventually('the start to wait', async () => (await ledger.db.run(waiting, {}))[0]?.count === 1)
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${internalAt.port}${path}`)
    return [answer.status, await answer.json()]
  }
  assert.deepEqual(await ask('/healthz'), [200, { status: 'up' }])
  assert.deepEqual(await ask('/readyz'), [503, { roles: 'starting', loops: 'ok' }])
  assert.equal((await ask('/v1/payins/P1'))[0], 503)
  await release()
  await starting
  await eventually('it to be ready', async () => (await ask('/readyz'))[0] === 200)
  assert.equal((await ask('/v1/payins/P1'))[0], 404)
})

test('payoutd starts while another transaction locks the row of a merchant whose settings are in force', async (t) => {
  const { config } = await testLedger(t)
  const start = () => startPayoutd(config, new Set(['dispatch']), silentLogger)
  await (await start()).stop()
  const release = await lockRows(t, config.databaseUrl, 'merchants')
  await (await start()).stop()
  await release()
})

test('a start that is asked to stop ends cleanly before it is up, and begins nothing more', {
  timeout: 60_000,
}, async (t) => {
  const database = await freshDatabase(t)
  const env = { ...testEnvironment(database), LOG_LEVEL: 'info' }
  await registered(readConfig(env))
  await database.db.run(
    sql<object>`insert into merchants (merchant_id, settings_hash) values ('acme', '')`,
    {},
  )
  const release = await lockRows(t, database.url, 'merchants')
  const { code, stdout } = await payoutdAlone(['serve', '--roles', 'dispatch'], env, '', (child) => {
    t.after(() => child.kill('SIGKILL'))
    void eventually('the start to wait', async () => (await database.db.run(waiting, {}))[0]?.count === 1)
      .then(() => child.kill('SIGTERM'))
      .then(release)
  })
  assert.equal(code, 0, stdout)
  assert.match(stdout, /"stopped before it had started"/)
  assert.doesNotMatch(stdout, /payoutd is up/)
})
