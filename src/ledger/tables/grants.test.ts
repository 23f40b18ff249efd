import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { ACCOUNT, accepted, payoutsOf, setBalance, testLedger, upsertMerchant } from '../../../test/ledger.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { pauseMerchant, resumeMerchant } from '../../operators/pause.ts'
import { silentLogger } from '../../platform/log.ts'
import { connectDatabase, type Database, sql, withSession } from '../../platform/postgres/postgres.ts'
import { claim } from '../../stages/dispatch/claim.ts'
import { storeDecisions } from '../ledger.ts'
import { latestActs } from '../sql/acts.ts'
import { grantTo } from './grants.ts'
import { migrate } from './migrate.ts'

const statement = (fragment: string) => sql<object>`${{ fragment }}`

/** A new role, with the URL by which it uses the database of `url`. */
async function newRole(t: TestContext, url: string): Promise<{ role: string; url: string }> {
  const role = `runner_${randomUUID().replaceAll('-', '')}`
  await withSession(url, (session) => session.query(`create role ${role} login password 'runner'`))
  t.after(() => withSession(url, (session) => session.query(`drop owned by ${role}; drop role ${role}`)))
  const theirs = new URL(url)
  theirs.username = role
  theirs.password = 'runner'
  return { role, url: theirs.href }
}

/** A new role that runs payoutd on the database of `url`. */
async function runner(t: TestContext, url: string): Promise<Database> {
  const theirs = await newRole(t, url)
  await grantTo(url, theirs.role)
  const db = connectDatabase({ url: theirs.url, connections: 2, applicationName: 'payoutd-test' })
  t.after(() => db.close())
  return db
}

test('the role that runs payoutd can store commands, claim, apply evidence, pause and clean up', async (t) => {
  const opened = await testLedger(t)
  const { config } = opened
  const db = await runner(t, config.databaseUrl)
  const ledger = { ...opened.ledger, db }
  await db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  await setBalance(db, 'acme', 10n ** 12n)
  await accepted(ledger, config, [command('p-1')])
  const limits = { maxInFlight: 64, ratePerSecond: null }
  const options = {
    merchantId: 'acme',
    atMost: 10,
    owner: 'me',
    leaseMs: 15_000,
    limits,
    sealing: config.sealing,
    fingerprintKey: config.fingerprintKey,
    account: ACCOUNT,
  }
  const { wave } = await claim(ledger, options)
  const [claimed] = wave
  assert.ok(claimed)
  const { payout } = claimed
  const unmoved = {
    change: { before: payout, after: payout, source: 'QUERY' as const, exchange: { note: 'slow' } },
  }
  const odd = {
    anomaly: {
      ...{ merchantId: 'acme', payoutId: 'p-1', orderNo: payout.orderNo, exchange: null },
      ...({ kind: 'amount-mismatch', detail: 'another', source: 'QUERY' } as const),
    },
  }
  for (let i = 0; i < 2; i++) await db.transaction('test', (tx) => storeDecisions(tx, ledger, [unmoved, odd]))
  const who = { merchantId: 'acme', by: 'asha', reason: 'a trial' }
  await pauseMerchant(db, { ...who, feeEstimate: null })
  await resumeMerchant(db, who)
  await opened.ledger.db.run(
    statement(
      `create table history_2020_01 partition of history for values from ('2020-01-01') to ('2020-02-01')`,
    ),
    {},
  )
  assert.deepEqual(await db.run(sql<object>`select keep_history(12) as dropped`, {}), [{ dropped: true }])
  assert.deepEqual(
    (await payoutsOf(ledger)).map(({ state }) => state),
    ['submitting'],
  )
})

test('the role that runs payoutd can only add to what operators did, and owns no table', async (t) => {
  const { url } = await freshDatabase(t)
  const db = await runner(t, url)
  const who = { merchantId: 'acme', by: 'asha', reason: 'a trial' }
  await pauseMerchant(db, { ...who, feeEstimate: 0n as never })
  for (const refused of [
    'delete from operator_acts',
    `update operator_acts set acted_by = 'ravi'`,
    'truncate operator_acts',
    'drop table operator_acts',
    'alter table operator_acts disable trigger all',
    'delete from history',
    `update history set to_state = 'paid'`,
    `delete from migrations`,
    'create table public.mine (n int)',
  ]) {
    await assert.rejects(db.run(statement(refused), {}), { code: '42501' }, refused)
  }
  const acts = await db.run(latestActs, { merchantId: null, since: null, limit: 10 })
  assert.deepEqual(
    acts.map(({ command, by }) => [command, by]),
    [['pause', 'asha']],
  )
  assert.match(acts[0]?.databaseRole ?? '', /^runner_/)
})

test('a role that has every right anyway is refused, and so is one that does not exist', async (t) => {
  const { url } = await freshDatabase(t)
  await assert.rejects(grantTo(url, new URL(url).username), /owns the tables or is a superuser/)
  await assert.rejects(grantTo(url, 'nobody_at_all'), /there is no role nobody_at_all/)
})

test('several processes may give the same rights at once', async (t) => {
  const { url } = await freshDatabase(t)
  const { role } = await newRole(t, url)
  await Promise.all([1, 2, 3].map(() => grantTo(url, role)))
})

test('a role that does not own the tables is told that it may not migrate', async (t) => {
  const { url } = await freshDatabase(t)
  const theirs = await newRole(t, url)
  await grantTo(url, theirs.role)
  await assert.rejects(migrate(theirs.url, silentLogger), /^Error: the database role \S+ may not migrate: /)
})
