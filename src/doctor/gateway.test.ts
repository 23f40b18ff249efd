import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { startSandbox } from '../../devkit/sandbox/sandbox.ts'
import type { BalanceAnswer, QueryAnswer } from '../domain/gateway-answers.ts'
import { paise } from '../domain/money.ts'
import { createGatewayClient } from '../gateway/client.ts'
import { loadDialect } from '../gateway/dialect/dialect-file.ts'
import { systemClock } from '../platform/running/clock.ts'
import { examine, good } from './examine.ts'
import { checkBalance, checkOrders, gatewayChecks } from './gateway.ts'

const KEY = 'Kb18f32c912daa29d'

async function sandbox(t: TestContext): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'payoutd-'))
  const { url, stop } = await startSandbox({
    state: join(folder, 'sandbox.sqlite'),
    merchants: [{ mchId: 'M1', key: KEY }],
    balance: 123_456_00n,
  })
  t.after(async () => {
    await stop()
    rmSync(folder, { recursive: true })
  })
  return url
}

async function findings(t: TestContext, settings: { baseUrl: string; mchId?: string; key?: string }) {
  const client = createGatewayClient({
    mchId: 'M1',
    key: KEY,
    ...settings,
    dialect: loadDialect('sandbox'),
    clock: systemClock,
    connections: 1,
  })
  t.after(() => client.close())
  const merchant = {
    ...{ merchantId: 'acme', baseUrl: settings.baseUrl, balance: () => client.balance() },
    knownOrders: async () => [],
    query: (mchOrderNo: string) => client.query({ mchOrderNo }),
  }
  const migrations = { name: 'migrations', run: async () => good('') }
  const checks = [migrations, ...gatewayChecks([merchant, { ...merchant, merchantId: 'bolt' }], systemClock)]
  const [, ...found] = await examine(checks, {
    addresses: { database: '', kafka: '', registry: '' },
    limitMs: 10_000,
    clock: systemClock,
    onFound: () => undefined,
  })
  return found
}

test('doctor queries the balance of every merchant, and reads the clock of a shared gateway once', async (t) => {
  const found = await findings(t, { baseUrl: await sandbox(t) })
  assert.deepEqual(
    found.map(({ name, finding }) => [name.replace(/\d+$/, ''), finding.state]),
    [
      ['gateway acme', 'good'],
      ['gateway bolt', 'good'],
      ['orders acme', 'good'],
      ['orders bolt', 'good'],
      ['gateway clock http://127.0.0.1:', 'good'],
    ],
  )
  assert.match(found[0]?.finding.what ?? '', /₹1,23,456.00 available/)
})

test('a gateway elsewhere over plain http causes a warning', () => {
  const answer = { kind: 'balance', availableAmount: paise(100) } as BalanceAnswer
  assert.deepEqual(
    ['http://gateway.example', 'https://gateway.example', 'http://127.0.0.1:1'].map(
      (baseUrl) => checkBalance(answer, baseUrl).state,
    ),
    ['warning', 'good', 'good'],
  )
})

test('the finding about a wrong key quotes the gateway', async (t) => {
  const [acme] = await findings(t, { baseUrl: await sandbox(t), key: 'not-the-key' })
  assert.match(acme?.finding.what ?? '', /refuses the balance query \(SIGN_ERROR: /)
})

test('doctor distinguishes a merchant that the gateway does not know from a gateway that is away', async (t) => {
  const [unknown] = await findings(t, { baseUrl: await sandbox(t), mchId: 'M2' })
  assert.match(unknown?.finding.what ?? '', /MERCHANT_NOT_FOUND/)
  const [away, , , , clock] = await findings(t, { baseUrl: 'http://127.0.0.1:9' })
  assert.equal(away?.finding.what, 'http://127.0.0.1:9 cannot be reached (ECONNREFUSED)')
  assert.equal(clock?.finding.state, 'unchecked')
})

test('orders that the gateway confirmed and does not find cause a warning, as its "not found" proves nothing; no answer is a fault', async () => {
  const orders = (answers: Record<string, string>) =>
    checkOrders({
      merchantId: 'acme',
      baseUrl: 'https://gateway.example',
      balance: () => assert.fail(),
      knownOrders: async () => Object.keys(answers),
      query: async (mchOrderNo) => ({ kind: answers[mchOrderNo] }) as QueryAnswer,
    })
  assert.equal((await orders({})).state, 'good')
  assert.equal((await orders({ M2: 'not-found', M1: 'found' })).state, 'good')
  assert.equal((await orders({ M2: 'not-found', M1: 'unknown' })).state, 'wrong')
  const { state, what } = await orders({ M2: 'not-found', M1: 'not-found' })
  assert.equal(state, 'warning')
  assert.match(what, /^https:\/\/gateway\.example confirmed M2, M1, and finds none of them: /)
})

test('an overloaded gateway is asked about, and not taken for a wrong path', () => {
  const advice = (httpStatus: number) => {
    const found = checkBalance(
      { kind: 'unknown', reason: 'http-status', exchange: { httpStatus } } as BalanceAnswer,
      'https://gateway.example',
    )
    return 'todo' in found ? found.todo : ''
  }
  for (const status of [429, 500, 503]) assert.equal(advice(status), 'ask the gateway what is wrong')
  assert.match(advice(404), /base URL/)
})

test('the finding about a base URL that leads elsewhere quotes the answer', async (t) => {
  const [acme] = await findings(t, { baseUrl: `${await sandbox(t)}/somewhere/else` })
  assert.match(acme?.finding.what ?? '', /answers HTTP 404/)
})
