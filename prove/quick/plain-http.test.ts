import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { Gateway } from '../../devkit/oracle/gateway-books.ts'
import { startSandbox } from '../../devkit/sandbox/sandbox.ts'
import { startPayoutd } from '../../src/app/start.ts'
import { readConfig } from '../../src/config/config.ts'
import { command } from '../../src/domain/commands/command.fixture.ts'
import { silentLogger } from '../../src/platform/log.ts'
import { sql } from '../../src/platform/postgres/postgres.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { freshDatabase } from '../../test/database.ts'
import {
  accepted,
  anomaliesOf,
  payoutsOf,
  registered,
  testEnvironment,
  testLedger,
} from '../../test/ledger.ts'

const MCH_ID = '1000100'
const folder = mkdtempSync(path.join(tmpdir(), 'plain-http-'))
after(() => rmSync(folder, { recursive: true }))

/** As in docker-compose.yml. */
function composeSetting(name: string): string {
  const file = readFileSync(path.join(import.meta.dirname, '..', '..', 'docker-compose.yml'), 'utf8')
  return new RegExp(`^ *${name}: (\\S+)$`, 'm').exec(file)?.[1] ?? assert.fail(`compose does not set ${name}`)
}

/** An address of this machine that connects as to another host. */
const address = (): string =>
  Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '0.0.0.0'

/** By payoutId: what the sandbox of compose does with it, and how it must end. */
const PAYOUTS = {
  usual: [{}, 'paid', 1],
  'to-a-vpa': [{ ifsc: null, vpa: 'asha@upi' }, 'paid', 1],
  refused: [{ currency: 'USD' }, 'failed', 0],
  later: [{ accountNo: '999900001102' }, 'paid', 1],
  fails: [{ accountNo: '9999000001' }, 'failed', 0],
  'never-answered': [{ accountNo: '9999000005' }, 'paid', 1],
  'hangs-first': [{ accountNo: '9999000006' }, 'paid', 1],
  'answers-500': [{ accountNo: '9999000008' }, 'paid', 1],
  'wrongly-signed': [{ accountNo: '9999000009' }, 'paid', 1],
} as const

const refusalProvedBy = sql<object, { source: string }>`
  select source from history where payout_id = 'refused' and to_state = 'failed'`

test('over plain http to another host, as in compose, each payout ends as at the gateway, and none is in review', {
  timeout: 120_000,
}, async (t) => {
  const composed = new URL(composeSetting('GATEWAY_BASE_URL'))
  assert.equal(composed.protocol, 'http:')
  const key = randomBytes(12).toString('hex')
  const sandbox = await startSandbox({
    state: path.join(folder, 'state.sqlite'),
    merchants: [{ mchId: MCH_ID, key }],
    host: '0.0.0.0',
  })
  t.after(() => sandbox.stop())
  const baseUrl = `${composed.protocol}//${address()}:${new URL(sandbox.url).port}`
  const database = await freshDatabase(t)
  const config = readConfig(
    testEnvironment(database, {
      GATEWAY_BASE_URL: baseUrl,
      GATEWAY_KEY: key,
      GATEWAY_DIALECT: composeSetting('GATEWAY_DIALECT'),
    }),
  )
  await registered(config)
  const { ledger: opened } = await testLedger(t)
  const ledger = { ...opened, db: database.db }
  await accepted(
    ledger,
    config,
    Object.entries(PAYOUTS).map(([payoutId, [fields]]) => command(payoutId, fields)),
  )
  const payoutd = await startPayoutd(config, new Set(['dispatch', 'outcomes']), silentLogger)
  t.after(() => payoutd.stop())
  await eventually('each to end', async () =>
    (await payoutsOf(ledger)).every(({ state }) => ['paid', 'failed'].includes(state)),
  )
  const payouts = await payoutsOf(ledger)
  assert.deepEqual(
    Object.fromEntries(payouts.map(({ payoutId, state }): [string, string] => [payoutId, state])),
    Object.fromEntries(Object.entries(PAYOUTS).map(([payoutId, [, end]]) => [payoutId, end])),
  )
  const orders = await new Gateway(sandbox.url, MCH_ID).orders()
  assert.deepEqual(
    payouts.map(({ payoutId, orderNo }) => [
      payoutId,
      orders
        .filter(({ mchOrderNo }) => mchOrderNo === orderNo)
        .reduce((all, { timesPaid }) => all + timesPaid, 0),
    ]),
    payouts.map(({ payoutId }) => [payoutId, PAYOUTS[payoutId as keyof typeof PAYOUTS][2]]),
  )
  assert.deepEqual(await anomaliesOf(ledger), [])
  assert.deepEqual(await ledger.db.run(refusalProvedBy, {}), [{ source: 'QUERY' }])
})
