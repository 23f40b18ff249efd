import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { startSandbox } from '../../devkit/sandbox/sandbox.ts'
import { ROLES, startPayoutd } from '../../src/app/start.ts'
import { payoutd } from '../../src/cli/cli.fixture.ts'
import { readConfig } from '../../src/config/config.ts'
import { silentLogger } from '../../src/platform/log.ts'
import { type Database, sql, withSession } from '../../src/platform/postgres/postgres.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { durableDatabase } from '../../test/durable-database.ts'
import { testEnvironment } from '../../test/ledger.ts'

const WHO = ['--by', 'asha', '--reason', 'a trial']
const statement = (fragment: string) => sql<object, Record<string, unknown>>`${{ fragment }}`

/** The database as docs/how-to/containers.md sets it up: one role owns it and migrates, the other runs payoutd. */
async function twoRoles(t: TestContext) {
  const { url, db } = await durableDatabase(t, { migrated: false })
  const of = async (name: string) => {
    const role = `${name}_${randomBytes(6).toString('hex')}`
    await db.run(statement(`create role ${role} login password 'secret'`), {})
    const theirs = new URL(url)
    theirs.username = role
    theirs.password = 'secret'
    return { role, url: theirs.href }
  }
  const owner = await of('owner')
  const runner = await of('runner')
  await db.run(statement(`alter database ${new URL(url).pathname.slice(1)} owner to ${owner.role}`), {})
  return { db, url, owner, runner }
}

async function gateway(t: TestContext): Promise<NodeJS.ProcessEnv> {
  const folder = mkdtempSync(path.join(tmpdir(), 'runner-'))
  const key = randomBytes(12).toString('hex')
  const merchants = [{ mchId: '1000100', key }]
  const sandbox = await startSandbox({ state: path.join(folder, 's.sqlite'), merchants, settleMs: 100 })
  t.after(async () => {
    await sandbox.stop()
    rmSync(folder, { recursive: true })
  })
  return { GATEWAY_BASE_URL: sandbox.url, GATEWAY_KEY: key }
}

/** A dialect with a grace of one second. */
const QUICK = { GATEWAY_DIALECT: path.join(import.meta.dirname, '../../test/quick-dialect.json') }

const leaveLag = statement(`
  insert into merchant_callback_lag
  values ('acme', 'long gone', 9000, now() - interval '61 minutes'), ('acme', 'alive', 9000, now())`)
const lags = statement(`select process_id from merchant_callback_lag where lag_ms = 9000`)

test('the role from --grant-to runs all of payoutd and every command, and cannot change append-only tables', async (t) => {
  const { db, url, owner, runner } = await twoRoles(t)
  const base = testEnvironment(
    { url, db },
    { ...(await gateway(t)), ...QUICK, TOPIC_PREFIX: `r${randomBytes(4).toString('hex')}.` },
  )
  const migrated = await payoutd(['migrate', ...WHO, '--grant-to', runner.role], {
    ...base,
    DATABASE_URL: owner.url,
  })
  assert.equal(migrated.code, 0, migrated.stderr)
  await db.run(leaveLag, {})

  const env = { ...base, DATABASE_URL: runner.url }
  const running = await startPayoutd(readConfig(env), new Set(ROLES), silentLogger)
  t.after(() => running.stop())
  await eventually(
    'what a process that is gone left behind to be swept',
    async () => (await db.run(lags, {})).length === 1,
  )
  assert.deepEqual(await db.run(lags, {}), [{ processId: 'alive' }])

  const run = async (...args: string[]) => {
    const ended = await payoutd(args, env)
    assert.equal(ended.code, 0, `${args.join(' ')}: ${ended.stdout}${ended.stderr}`)
    return ended.stdout
  }
  const ingest = async (batch: string, rows: number) => {
    const file = path.join(mkdtempSync(path.join(tmpdir(), 'payroll-')), `${batch}.csv`)
    t.after(() => rmSync(path.dirname(file), { recursive: true }))
    const lines = Array.from(
      { length: rows },
      (_, n) => `${batch}-${n},Asha Rao,5010012345678${n},HDFC0001234,${100 + n}.00`,
    )
    writeFileSync(file, `reference,account_name,account_no,ifsc,amount\n${lines.join('\n')}\n`)
    await run('ingest', file, '--batch', batch)
  }
  const statesOf = async (batch: string) => {
    const { stdout } = await payoutd(['payout', 'list', '--batch', batch, '--json'], env)
    return stdout
      .split('\n')
      .flatMap((line) => (line.startsWith('{') ? [JSON.parse(line).state as string] : []))
  }
  const all = (batch: string, rows: number, state: string) =>
    eventually(`${batch} to be ${state}`, async () => {
      const states = await statesOf(batch)
      return states.length === rows && states.every((each) => each === state)
    })

  await ingest('november', 3)
  await all('november', 3, 'paid')
  await run('pause', 'acme', '--yes', ...WHO)
  await ingest('december', 2)
  await all('december', 2, 'held')
  await run('payout', 'release', '--batch', 'december', '--yes', ...WHO)
  await run('payout', 'cancel', '--batch', 'december', '--yes', ...WHO)
  await all('december', 2, 'cancelled')
  await run('resume', 'acme', '--yes', ...WHO)
  await run('payin', 'create', '--amount', '50000', '--idempotency-key', 'order-7', ...WHO)
  const day = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)
  await run('reconcile', '--from', day(-1), '--to', day(2), '--settle', '--yes', ...WHO)
  await run('keys', 'rotate', '--yes', ...WHO)
  await run('recover', '--yes', ...WHO)
  for (const look of ['merchants', 'payout review', 'anomaly list', 'dlq list', 'outbox list'])
    await run(...look.split(' '))
  const found = await payoutd(['doctor', '--json'], { ...env, PUBLIC_URL: running.publicUrl ?? '' })
  const { checks } = JSON.parse(found.stdout) as { checks: { name: string; state: string; what: string }[] }
  assert.deepEqual(
    checks.filter(({ state }) => state === 'wrong' || state === 'unchecked'),
    [],
  )

  // What it learned meanwhile would add history.
  await running.stop()
  const before = await kept(db)
  await onlyAddedTo(runner.url)
  assert.deepEqual(await kept(db), before)
  const acts = (await run('acts', 'list', '--json'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  const roles = acts.map(({ command, databaseRole }) => [command, databaseRole])
  assert.deepEqual(roles.reverse(), [
    // Once for the tables, and once for the topics.
    ['migrate', owner.role],
    ['migrate', owner.role],
    ...[
      'serve',
      'ingest',
      'ingest',
      'pause',
      'ingest',
      'ingest',
      'payout release',
      'payout cancel --batch',
      'payout cancel',
      'resume',
      'payin create',
    ].map((each) => [each, runner.role]),
    ...['reconcile --settle', 'reconcile --settle', 'keys rotate', 'keys rotate', 'recover', 'recover'].map(
      (each) => [each, runner.role],
    ),
  ])
})

const kept = (db: Database) =>
  db.run(
    statement(`
      select (select count(*) from operator_acts) as acts, (select count(*) from gateway_settings) as settings,
        (select count(*) from history) as history, (select count(*) from migrations) as migrations`),
    {},
  )

/** Tries every way to change history: in the tables, in a month's partition, and by becoming their owner. */
async function onlyAddedTo(url: string): Promise<void> {
  await withSession(url, async (session) => {
    const { rows: months } = await session.query(
      `select inhrelid::regclass::text as name from pg_inherits where inhparent = 'history'::regclass`,
    )
    assert.ok(months.length > 3)
    const tables = ['operator_acts', 'gateway_settings', 'history', 'migrations', 'compatibility']
    for (const name of [...tables, ...months.map((month) => month.name as string)]) {
      const { rows: columns } = await session.query(
        `select attname as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and attgenerated = '' and attidentity <> 'a'`,
        [name],
      )
      const changeable = name === 'history' ? ['times', 'last_at'] : []
      const wishes = [
        `delete from ${name}`,
        `truncate ${name}`,
        `drop table ${name}`,
        `alter table ${name} disable trigger all`,
        ...columns
          .filter((column) => !changeable.includes(column.name))
          .map((column) => `update ${name} set ${column.name} = ${column.name}`),
      ]
      for (const wish of wishes) await assert.rejects(session.query(wish), { code: '42501' }, wish)
    }
  })
}
