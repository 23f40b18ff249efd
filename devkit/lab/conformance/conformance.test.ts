import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { Dialect } from '../../../src/gateway/dialect/dialect.ts'
import { loadDialect } from '../../../src/gateway/dialect/dialect-file.ts'
import { signature } from '../../../src/gateway/wire/sign.ts'
import { systemClock } from '../../../src/platform/running/clock.ts'
import { DEFAULTS, type SandboxOptions, startSandbox } from '../../sandbox/sandbox.ts'
import { openCallbacks } from './callbacks.ts'
import { keptIntervals } from './cases/callbacks.ts'
import { Differs } from './demand.ts'
import { Subject, type SubjectSettings } from './subject.ts'
import { CASES, tryConformance, type Verdict } from './suite.ts'
import { type ConformanceWorld, SANDBOX_BENEFICIARY, sandboxWorld } from './world.ts'

const MERCHANT = { mchId: 'M1000', key: 'a-long-secret' }

const PATIENCE = { leaseMs: 60_000, sendTimeoutMs: { headers: 30_000 } }
const PATIENT = loadDialect('sandbox', PATIENCE)

const OWN_PATHS = {
  ...{ apply: '/pay/out', payoutQuery: '/pay/out/query', balance: '/api/agentpay/query_order' },
  ...{ payinCreate: '/pay/in', payinQuery: '/pay/in/query', payinRecovery: '/pay/in/recover' },
}
const SETTINGS = [
  ...(['algorithm', 'sort', 'hexCase', 'keySuffix'] as const),
  ...(['requests', 'answers', 'callbacks', 'failures', 'paths'] as const),
]
type Setting = (typeof SETTINGS)[number]

/** By body, and by the settings that differ from the default. */
const DIALECTS: readonly (readonly [body: Dialect['body'], ...Setting[]])[] = [
  ['form'],
  ['query', 'sort', 'hexCase', 'keySuffix', 'requests', 'answers', 'callbacks', 'failures'],
  ['json', 'algorithm', 'sort', 'hexCase', 'callbacks', 'failures', 'paths'],
  ['query', 'algorithm', 'hexCase', 'keySuffix', 'requests', 'answers', 'paths'],
  ['json', 'sort', 'requests', 'answers', 'paths'],
  ['form', 'algorithm', 'keySuffix', 'answers', 'callbacks', 'failures', 'paths'],
  ['form', 'algorithm', 'sort', 'hexCase', 'keySuffix', 'requests', 'failures', 'paths'],
  ['json', 'algorithm', 'keySuffix', 'requests', 'callbacks'],
  ['query', 'algorithm', 'sort', 'failures', 'paths'],
]

function dialectOf([body, ...others]: (typeof DIALECTS)[number]) {
  const has = (setting: Setting) => others.includes(setting)
  const emptyFields = { requests: has('requests'), answers: has('answers'), callbacks: has('callbacks') }
  const sign = {
    algorithm: has('algorithm') ? 'hmac-sha256' : 'md5',
    sort: has('sort') ? 'name' : 'whole-ignoring-case',
    hexCase: has('hexCase') ? 'lower' : 'upper',
    keySuffix: has('keySuffix') ? 'appSecret' : 'key',
    emptyFields,
    failures: !has('failures'),
  } as const
  return { body, sign, paths: has('paths') ? OWN_PATHS : {} }
}

type Wanted = Pick<SubjectSettings, 'baseUrl' | 'world'> & Partial<SubjectSettings>

async function settingsOf(t: TestContext, wanted: Wanted): Promise<SubjectSettings> {
  const callbacks = await openCallbacks({ port: 0, url: null, clock: systemClock })
  t.after(() => callbacks.close())
  return {
    ...MERCHANT,
    tls: {},
    dialect: PATIENT,
    callbacks,
    beneficiary: SANDBOX_BENEFICIARY,
    patienceMs: 10_000,
    clock: systemClock,
    ...wanted,
  }
}

/** The names of the cases by verdict; for those that differ, with what was seen. */
async function tried(t: TestContext, wanted: Wanted): Promise<Record<Verdict['verdict'], string[]>> {
  const names: Record<Verdict['verdict'], string[]> = {
    holds: [],
    differs: [],
    'not-shown': [],
    'not-tried': [],
  }
  for await (const { case: each, verdict, seen } of tryConformance(await settingsOf(t, wanted))) {
    names[verdict].push(verdict === 'differs' ? `${each.name}: ${seen}` : each.name)
  }
  return names
}

async function sandboxUrl(
  t: TestContext,
  dialect: SandboxOptions['dialect'] = {},
  callbackRetries: SandboxOptions['callbackRetries'] = DEFAULTS.callbackRetries,
): Promise<string> {
  const folder = mkdtempSync(path.join(tmpdir(), 'conformance-'))
  const state = path.join(folder, 'state.sqlite')
  const sandbox = await startSandbox({
    state,
    merchants: [{ ...MERCHANT, dialect }],
    settleMs: 10,
    callbackRetries,
  })
  t.after(async () => {
    await sandbox.stop()
    rmSync(folder, { recursive: true })
  })
  return sandbox.url
}

/** A server with one well-signed answer for every operation, and without a checkout page. */
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

const PARROT_WORLD: ConformanceWorld = {
  pay: async () => undefined,
  decline: async () => undefined,
  payUntold: async () => '632611200001',
  failingAccountNo: '50100123456789',
}
const namesOf = (open: boolean) => CASES.filter((each) => Boolean(each.open) === open).map(({ name }) => name)

test('each name belongs to one case', () => {
  assert.equal(new Set(CASES.map(({ name }) => name)).size, CASES.length)
})

test('every two values of every two settings meet in a tested dialect', () => {
  for (const [i, setting] of SETTINGS.entries()) {
    const valuesWith = (of: (dialect: (typeof DIALECTS)[number]) => unknown) =>
      new Set(DIALECTS.map((dialect) => `${dialect.includes(setting)} ${of(dialect)}`)).size
    assert.equal(
      valuesWith(([body]) => body),
      6,
      setting,
    )
    for (const other of SETTINGS.slice(0, i)) {
      assert.equal(
        valuesWith((dialect) => dialect.includes(other)),
        4,
        `${setting} with ${other}`,
      )
    }
  }
})

describe('the sandbox differs in nothing and answers every open question', { concurrency: true }, () => {
  for (const each of DIALECTS) {
    test(each.join(', '), async (t) => {
      const spoken = dialectOf(each)
      const baseUrl = await sandboxUrl(t, spoken)
      const dialect = loadDialect('sandbox', { ...PATIENCE, ...spoken })
      const names = await tried(t, { baseUrl, dialect, world: sandboxWorld(baseUrl, MERCHANT.mchId) })
      assert.deepEqual(names.differs, [])
      assert.deepEqual(names['not-shown'], namesOf(true))
      assert.deepEqual(names['not-tried'], [])
    })
  }
})

test('if there is neither a payer nor a beneficiary, cases that need one are not tried', async (t) => {
  const names = await tried(t, { baseUrl: await sandboxUrl(t), world: null, beneficiary: null })
  assert.deepEqual(names.differs, [])
  assert.ok(names.holds.includes('payin-query/by-merchant-number'))
  for (const name of ['payin-query/paid', 'payin-recovery/submitted', 'payout-create/taken']) {
    assert.ok(names['not-tried'].includes(name), name)
  }
})

test('a server that accepts everything holds only in that it accepts and signs', async (t) => {
  const answer = { retCode: 'SUCCESS', payOrderId: 'P1', agentpayOrderId: 'P1', mchOrderNo: 'M1' }
  const baseUrl = await parrotUrl(t, answer)
  const names = await tried(t, { baseUrl, world: PARROT_WORLD, patienceMs: 20 })
  assert.deepEqual(names.holds, [
    ...['sign/answers', 'sign/form', 'payin-create/no-status', 'payin-create/optional'],
    'payout-create/optional',
  ])
})

test('a server that refuses everything differs where it should accept, and the rest is not tried', async (t) => {
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

test('without the sandbox’s checkout page, cases that need a payer are not tried', async (t) => {
  const baseUrl = await parrotUrl(t, { retCode: 'SUCCESS', payOrderId: 'P1' })
  const names = await tried(t, { baseUrl, world: sandboxWorld(baseUrl, MERCHANT.mchId), beneficiary: null })
  assert.ok(names['not-tried'].includes('payin-query/paid'))
})

test('with another key no answer is signed well', async (t) => {
  const baseUrl = await parrotUrl(t, { retCode: 'SUCCESS', payOrderId: 'P1' })
  const names = await tried(t, { baseUrl, world: null, key: 'another', beneficiary: null })
  assert.ok(names.differs.includes('sign/answers: payinCreate: bad'))
})

test('where time can be moved forward, a callback that comes too early or not again differs', async (t) => {
  const payin = CASES.find(({ name }) => name === 'payin-callback/retries')
  const asked = async (retries: readonly number[], patienceMs: number) => {
    const baseUrl = await sandboxUrl(t, {}, retries)
    const world = sandboxWorld(baseUrl, MERCHANT.mchId)
    const subject = new Subject(await settingsOf(t, { baseUrl, world, patienceMs }))
    t.after(() => subject.close())
    return payin?.ask(subject)
  }
  await assert.rejects(asked([60, 80], 10_000), new Differs('try 3 came before 120 s'))
  await assert.rejects(asked([], 100), new Differs('try 2 did not come after 60 s'))
})

test('repeated callbacks keep the intervals only if none comes early or late or is missing', () => {
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
