import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../platform/clock.ts'
import { systemIds } from '../../platform/ids.ts'
import { startSandbox } from '../../sandbox/sandbox.ts'
import type { Dialect } from '../dialect.ts'
import { loadDialect } from '../dialect-file.ts'
import { signature } from '../sign.ts'
import { openCallbacks } from './callbacks.ts'
import { keptIntervals } from './cases/callbacks.ts'
import { Differs } from './demand.ts'
import type { SubjectSettings } from './subject.ts'
import { CASES, tryConformance, type Verdict } from './suite.ts'
import { SANDBOX_BENEFICIARY, sandboxWorld, type World } from './world.ts'

const MERCHANT = { mchId: 'M1000', key: 'a-long-secret' }

const PATIENCE = { leaseMs: 60_000, sendTimeoutMs: { headers: 30_000 } }
const PATIENT = loadDialect('sandbox', PATIENCE)

/** Together they have every value of every setting that the sandbox speaks. */
const DIALECTS = [
  { body: 'form', sign: {} },
  { body: 'json', sign: { algorithm: 'hmac-sha256', hexCase: 'lower' } },
  { body: 'query', sign: { sort: 'name', keySuffix: 'appSecret' } },
  {
    body: 'form',
    sign: { emptyFields: { requests: true, answers: true, callbacks: true }, failures: false },
  },
  { body: 'json', sign: { algorithm: 'md5', sort: 'name', hexCase: 'lower', failures: false } },
]

type Wanted = Pick<SubjectSettings, 'baseUrl' | 'world'> & Partial<SubjectSettings>

/** The names of the cases by the verdict that they came to, those that differ with what was seen. */
async function tried(t: TestContext, wanted: Wanted): Promise<Record<Verdict['verdict'], string[]>> {
  const callbacks = await openCallbacks({ port: 0, url: null, clock: systemClock })
  t.after(() => callbacks.close())
  const names: Record<Verdict['verdict'], string[]> = {
    holds: [],
    differs: [],
    'not-shown': [],
    'not-tried': [],
  }
  const settings: SubjectSettings = {
    ...MERCHANT,
    dialect: PATIENT,
    callbacks,
    beneficiary: SANDBOX_BENEFICIARY,
    patienceMs: 10_000,
    clock: systemClock,
    ids: systemIds,
    ...wanted,
  }
  for await (const { case: each, verdict, seen } of tryConformance(settings)) {
    names[verdict].push(verdict === 'differs' ? `${each.name}: ${seen}` : each.name)
  }
  return names
}

async function sandboxUrl(t: TestContext, { body, sign }: Dialect = PATIENT): Promise<string> {
  const folder = mkdtempSync(path.join(tmpdir(), 'conformance-'))
  const state = path.join(folder, 'state.sqlite')
  const sandbox = await startSandbox({
    state,
    merchants: [{ ...MERCHANT, dialect: { body, sign } }],
    settleMs: 10,
    callbackRetries: [0, 0, 0, 0, 0],
  })
  t.after(async () => {
    await sandbox.stop()
    rmSync(folder, { recursive: true })
  })
  return sandbox.url
}

/** A server of one answer to every operation, signed well, and without a checkout page. */
async function parrotUrl(t: TestContext, answer: Record<string, string>): Promise<string> {
  const { sign: rules } = loadDialect('default')
  const sign = signature(new Map(Object.entries(answer)), MERCHANT.key, rules, 'answers')
  const server = createServer(({ url }, response) => {
    response.statusCode = url?.startsWith('/checkout/') ? 404 : 200
    response.end(JSON.stringify({ ...answer, sign }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const PARROT_WORLD: World = {
  pay: async () => undefined,
  decline: async () => undefined,
  payUntold: async () => '632611200001',
  failingAccountNo: '50100123456789',
}
const namesOf = (open: boolean) => CASES.filter((each) => Boolean(each.open) === open).map(({ name }) => name)

test('every name is of one case', () => {
  assert.equal(new Set(CASES.map(({ name }) => name)).size, CASES.length)
})

for (const { body, sign } of DIALECTS) {
  const way = [body, ...Object.entries(sign).map(([name, value]) => `${name} ${JSON.stringify(value)}`)].join(
    ', ',
  )
  test(`the sandbox differs in nothing and answers every open question: ${way}`, async (t) => {
    const dialect = loadDialect('sandbox', { ...PATIENCE, body, sign })
    const baseUrl = await sandboxUrl(t, dialect)
    const names = await tried(t, { baseUrl, dialect, world: sandboxWorld(baseUrl) })
    assert.deepEqual(names.differs, [])
    assert.deepEqual(names['not-shown'], namesOf(true))
    // A quarter of an hour: keptIntervals is tested by itself.
    assert.deepEqual(names['not-tried'], ['payin-callback/retries'])
  })
}

test('where nobody pays and nobody is to be paid, what needs it is not tried', async (t) => {
  const names = await tried(t, { baseUrl: await sandboxUrl(t), world: null, beneficiary: null })
  assert.deepEqual(names.differs, [])
  assert.ok(names.holds.includes('payin-query/by-merchant-number'))
  for (const name of ['payin-query/paid', 'payin-recovery/submitted', 'payout-create/taken']) {
    assert.ok(names['not-tried'].includes(name), name)
  }
})

test('a server that takes everything holds in nothing but that it takes and signs', async (t) => {
  const answer = { retCode: 'SUCCESS', payOrderId: 'P1', agentpayOrderId: 'P1', mchOrderNo: 'M1' }
  const baseUrl = await parrotUrl(t, answer)
  const names = await tried(t, { baseUrl, world: PARROT_WORLD, patienceMs: 20 })
  assert.deepEqual(names.holds, [
    ...['sign/answers', 'sign/form', 'payin-create/no-status', 'payin-create/optional'],
    'payout-create/optional',
  ])
})

test('a server that takes nothing differs where it should have taken, and the rest is not tried', async (t) => {
  const baseUrl = await parrotUrl(t, { retCode: 'FAIL' })
  const names = await tried(t, { baseUrl, world: PARROT_WORLD, patienceMs: 20 })
  assert.deepEqual(names.differs, [
    'payin-create/taken: refused with FAIL',
    'payout-create/taken: refused with FAIL',
    'balance/record: answers FAIL',
    'balance/unsigned: it is signed, and the signature is good',
  ])
  assert.ok(names['not-tried'].includes('payin-create/amount'))
})

test('where the sandbox’s checkout page is not, what needs a payer is not tried', async (t) => {
  const baseUrl = await parrotUrl(t, { retCode: 'SUCCESS', payOrderId: 'P1' })
  const names = await tried(t, { baseUrl, world: sandboxWorld(baseUrl), beneficiary: null })
  assert.ok(names['not-tried'].includes('payin-query/paid'))
})

test('with another key no answer is signed well', async (t) => {
  const baseUrl = await parrotUrl(t, { retCode: 'SUCCESS', payOrderId: 'P1' })
  const names = await tried(t, { baseUrl, world: null, key: 'another', beneficiary: null })
  assert.ok(names.differs.includes('sign/answers: payinCreate: bad'))
})

test('callbacks that come again keep the intervals only if none comes early, late, or is missing', () => {
  const at = (...seconds: number[]) => seconds.map((second) => ({ at: second * 1000 }))
  assert.equal(keptIntervals(at(0, 60, 181, 361, 601, 903)), 'after 60, 121, 180, 240, 302 s')
  for (const kept of [
    at(0, 50, 170, 350, 590, 890),
    at(0, 60, 180, 360, 600),
    at(0, 60, 180, 360, 600, 960),
    at(0),
  ]) {
    assert.throws(() => keptIntervals(kept), Differs)
  }
})
