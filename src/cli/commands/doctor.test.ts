import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { startSandbox } from '../../../devkit/sandbox/sandbox.ts'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { durableDatabase } from '../../../test/durable-database.ts'
import { testEnvironment } from '../../../test/ledger.ts'
import { ROLES, startPayoutd } from '../../app/start.ts'
import { readConfig } from '../../config/config.ts'
import { migrateAll } from '../../ledger/tables/migrate-all.ts'
import { pauseMerchant } from '../../operators/pause.ts'
import { silentLogger } from '../../platform/log.ts'
import { connectDatabase } from '../../platform/postgres/postgres.ts'
import { payoutd } from '../cli.fixture.ts'

type CheckFound = { name: string; state: string; what: string; todo?: string }
type DoctorReport = { healthy: boolean; checks: CheckFound[] }

/** An environment whose gateway is a running sandbox. */
async function environment(t: TestContext, database: TestDatabase): Promise<NodeJS.ProcessEnv> {
  const folder = mkdtempSync(path.join(tmpdir(), 'payoutd-'))
  const sandbox = await startSandbox({
    state: path.join(folder, 'sandbox.sqlite'),
    merchants: [{ mchId: '1000100', key: 'a-key-of-this-test' }],
  })
  t.after(async () => {
    await sandbox.stop()
    rmSync(folder, { recursive: true })
  })
  const gateway = { GATEWAY_BASE_URL: sandbox.url, GATEWAY_KEY: 'a-key-of-this-test' }
  return testEnvironment(database, gateway)
}

test('while everything that payoutd needs is running, doctor finds it good, and a reason why nothing moves is no failure', async (t) => {
  const env = await environment(t, await durableDatabase(t))
  const config = readConfig(env)
  await migrateAll(config, silentLogger)
  const running = await startPayoutd(config, new Set(ROLES), silentLogger)
  try {
    const { code, stdout } = await payoutd(['doctor', '--json'], {
      ...env,
      PUBLIC_URL: running.publicUrl ?? '',
    })
    const report = JSON.parse(stdout) as DoctorReport
    assert.deepEqual(
      report.checks.filter(({ state }) => state !== 'good'),
      [],
    )
    assert.deepEqual([report.healthy, code], [true, 0])
    assert.ok(report.checks.length > 20)

    const db = connectDatabase({ url: config.databaseUrl, connections: 1, applicationName: 'test' })
    await pauseMerchant(db, { merchantId: 'acme', by: 'meera', reason: 'audit', feeEstimate: null })
    await db.close()
    const paused = await payoutd(['doctor'], { ...env, PUBLIC_URL: running.publicUrl ?? '' })
    assert.equal(paused.code, 0, paused.stdout)
    assert.match(paused.stdout, /^! paused merchants +acme was paused by meera at .*: audit\n +→ /m)
    assert.match(paused.stdout, /everything works, but 1 of \d+ checks warns: follow the advice above/)
  } finally {
    await running.stop()
  }
})

test('a dead database and a dead Kafka hide neither the working gateway nor the closed callback endpoint', async (t) => {
  const env = await environment(t, await freshDatabase(t))
  const { code, stdout, stderr } = await payoutd(['doctor'], {
    ...env,
    DATABASE_URL: 'postgres://payoutd:a-secret-word@127.0.0.1:9/payouts',
    KAFKA_BROKERS: '127.0.0.1:9',
    PUBLIC_URL: 'http://127.0.0.1:2',
  })
  assert.equal(code, 1)
  assert.match(stdout, /✘ database +the database 127.0.0.1:9\/payouts refuses connections\n +→ start it/)
  assert.match(stdout, /✘ Kafka +Kafka at 127.0.0.1:9 does not answer/)
  assert.match(stdout, /– topics +not checked: it needs "Kafka"/)
  assert.match(stdout, /✔ gateway acme +http:\S+ answers, ₹\S+ available/)
  assert.match(
    stdout,
    /✘ callback address acme +nothing answers at http:\/\/127.0.0.1:2\/callbacks\/payout\/acme/,
  )
  assert.match(stdout, /of \d+ checks failed, \d+ could not run/)
  assert.ok(!`${stdout}${stderr}`.includes('a-secret-word'))
})
