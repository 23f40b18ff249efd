import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { paise } from '../../src/domain/money.ts'
import { parsePayinCallback, parsePayoutCallback } from '../../src/gateway/callbacks/callback.ts'
import { createGatewayClient } from '../../src/gateway/client.ts'
import type { Dialect } from '../../src/gateway/dialect/dialect.ts'
import { loadDialect } from '../../src/gateway/dialect/dialect-file.ts'
import { ORDER, PAYIN } from '../../src/gateway/testing.ts'
import { systemClock } from '../../src/platform/running/clock.ts'
import type { Paths } from './paths.ts'
import { startSandbox } from './sandbox.ts'
import {
  KEY,
  MCH_ID,
  merchantOf,
  newStateFile,
  payout,
  press,
  receiveCallbacks,
  sign,
  until,
} from './testing.ts'
import { STANDARD } from './wire/dialect.ts'
import { readDialect } from './wire/dialect-file.ts'

const anyDialect = fc.record({
  body: fc.constantFrom('form', 'json', 'query'),
  sign: fc.record({
    algorithm: fc.constantFrom('md5', 'hmac-sha256'),
    sort: fc.constantFrom('whole-ignoring-case', 'name'),
    hexCase: fc.constantFrom('upper', 'lower'),
    keySuffix: fc.constantFrom('key', 'appSecret'),
    emptyFields: fc.record({ requests: fc.boolean(), answers: fc.boolean(), callbacks: fc.boolean() }),
    failures: fc.boolean(),
  }),
  paths: fc.record(
    {
      apply: fc.constantFrom('/api/agentpay/apply', '/own/apply'),
      payoutQuery: fc.constantFrom('/api/pay/orderquery', '/api/pay/query_order', '/own/query'),
      balance: fc.constantFrom('/api/agentpay/query_balance', '/api/agentpay/query_order', '/own/balance'),
      payinCreate: fc.constantFrom('/api/pay/neworder', '/own/create'),
      payinQuery: fc.constantFrom('/api/pay/orderquery', '/api/pay/query_order', '/own/query'),
      payinRecovery: fc.constantFrom('/api/pay/replace', '/own/replace'),
    },
    { requiredKeys: [] },
  ),
})
type Spoken = Pick<Dialect, 'body' | 'sign'> & { paths?: Paths }

/** The same dialect with one setting changed; each change shows in any request. */
function misheard(spoken: Spoken): Spoken[] {
  const { body, sign, paths = {} } = spoken
  const signed = (over: Partial<Spoken['sign']>): Spoken => ({ ...spoken, sign: { ...sign, ...over } })
  return [
    { ...spoken, body: body === 'json' ? 'form' : 'json' },
    { ...spoken, body: body === 'query' ? 'form' : 'query' },
    signed({ algorithm: sign.algorithm === 'md5' ? 'hmac-sha256' : 'md5' }),
    signed({ hexCase: sign.hexCase === 'upper' ? 'lower' : 'upper' }),
    signed({ keySuffix: sign.keySuffix === 'key' ? 'appSecret' : 'key' }),
    { ...spoken, paths: { ...paths, payoutQuery: '/elsewhere' } },
    ...(paths.payoutQuery === '/own/query'
      ? [{ ...spoken, paths: { ...paths, payoutQuery: '/api/pay/orderquery' } }]
      : []),
  ]
}

const PATIENCE = { leaseMs: 60_000, sendTimeoutMs: { connect: 10_000, headers: 30_000 } }
const free = { mayStillSend: () => true }

/** A merchant's client in this dialect, closed after `use`. */
async function speaking<T>(
  url: string,
  mchId: string,
  spoken: Spoken,
  use: (client: ReturnType<typeof createGatewayClient>) => Promise<T>,
): Promise<T> {
  const dialect = loadDialect('sandbox', { ...PATIENCE, ...spoken })
  const settings = { baseUrl: url, mchId, key: KEY, dialect, connections: 1, clock: systemClock }
  const client = createGatewayClient(settings)
  try {
    return await use(client)
  } finally {
    await client.close()
  }
}

const putMerchant = async (url: string, wanted: object) =>
  (
    await fetch(`${url}/_sandbox/merchants`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(wanted),
    })
  ).status

test("payoutd's client and the sandbox understand each other in every shared dialect, and in no other pair", async (t) => {
  const sandbox = await startSandbox({ state: newStateFile(), merchants: [], settleMs: 0 })
  t.after(() => sandbox.stop())
  const { url } = sandbox
  const endpoint = await receiveCallbacks(t)
  let runs = 0

  await fc.assert(
    fc.asyncProperty(anyDialect, async (spoken: Spoken) => {
      const mchId = `D${++runs}`
      assert.equal(await putMerchant(url, { mchId, key: KEY, dialect: spoken }), 201)
      const told = async (order: string) => {
        await until(`a callback about ${order}`, () => endpoint.about(order).length === 1)
        return endpoint.about(order)[0]?.query ?? ''
      }
      const order = { ...ORDER, amount: paise(10_000), notifyUrl: endpoint.notifyUrl }

      await speaking(url, mchId, spoken, async (client) => {
        assert.equal((await client.balance()).kind, 'balance')
        // Some dialects sign the empty remark.
        const named = { ...order, mchOrderNo: `${mchId}-PAID`, accountName: 'Zoë Ähm', remark: '' }
        assert.equal((await client.apply(named, free)).kind, 'accepted')
        const paid = parsePayoutCallback(await told(named.mchOrderNo), spoken, KEY)
        assert.equal(paid.kind === 'verified' && paid.report.status, 'success')
        const found = await client.query({ mchOrderNo: named.mchOrderNo })
        assert.equal(found.kind === 'found' && found.report.status, 'success')

        const magic = { ...order, mchOrderNo: `${mchId}-FAILS`, accountNo: '9999000001' }
        assert.equal((await client.apply(magic, free)).kind, 'accepted')
        const failed = parsePayoutCallback(await told(magic.mchOrderNo), spoken, KEY)
        assert.equal(failed.kind === 'verified' && failed.report.status, 'failed')
        assert.equal((await client.apply(magic, free)).kind, 'duplicate')

        const mchOrderNo = `${mchId}-PAYIN`
        const created = await client.payinCreate(
          { ...PAYIN, mchOrderNo, notifyUrl: endpoint.notifyUrl },
          free,
        )
        assert.ok(created.kind === 'accepted')
        await press(url, created.payOrderId, 'fail')
        const declined = parsePayinCallback(await told(mchOrderNo), spoken, KEY)
        assert.equal(declined.kind === 'verified' && declined.report.status, 'failed')
        const asked = await client.payinQuery({ mchOrderNo }, { executeNotify: false })
        assert.equal(asked.kind === 'known' && asked.report.status, 'failed')
        const lost = await client.payinRecover({ payOrderId: created.payOrderId, utr: '000000000000' })
        assert.equal(lost.kind, 'not-found')
      })
      for (const other of misheard(spoken)) {
        const heard = await speaking(url, mchId, other, (client) =>
          client.query({ mchOrderNo: `${mchId}-PAID` }),
        )
        assert.notEqual(heard.kind, 'found', JSON.stringify(other))
      }
    }),
    { numRuns: 40 },
  )
})

test('an operation answers at the path in the dialect, and without one at every path of the contract', async (t) => {
  const dialect = { paths: { balance: '/own/balance', payinQuery: '/api/pay/query_order' } }
  const merchants = [
    { mchId: MCH_ID, key: KEY, dialect },
    { mchId: 'M2000', key: KEY },
  ]
  const sandbox = await startSandbox({ state: newStateFile(), merchants })
  t.after(() => sandbox.stop())
  const { post, apply, create } = merchantOf(sandbox.url)
  await apply()
  await create()
  const said = async (paths: readonly string[], params: Record<string, string>) => {
    const answers: unknown[] = []
    for (const path of paths) {
      const { http, fields } = await post(path, params)
      answers.push(http === 200 ? fields.retCode : http)
    }
    return answers
  }
  const balances = ['/api/agentpay/query_balance', '/api/agentpay/query_order', '/own/balance']
  const queries = ['/api/pay/orderquery', '/api/pay/query_order', '/own/balance']
  const reqTime = '20261121120000'
  const ours = { mchId: MCH_ID, reqTime }
  assert.deepEqual(await said(balances, ours), [404, 404, 'SUCCESS'])
  assert.deepEqual(await said(balances, { mchId: 'M2000', reqTime }), ['SUCCESS', 'SUCCESS', 404])
  const nobody = 'MERCHANT_NOT_FOUND'
  assert.deepEqual(await said(balances, { mchId: 'M404', reqTime }), [nobody, nobody, 404])
  const aPayout = { ...ours, mchOrderNo: 'ORDER1' }
  assert.deepEqual(await said(queries.slice(0, 2), aPayout), ['SUCCESS', 'SUCCESS'])
  const aPayin = { mchId: MCH_ID, mchOrderNo: 'PAYIN1', executeNotify: 'false' }
  assert.deepEqual(await said(queries, aPayin), ['REQ_TIME_INVALID', 'SUCCESS', 'REQ_TIME_INVALID'])
})

test('a failure carries a signature unless the dialect says otherwise', async (t) => {
  const silent = { ...STANDARD, sign: { ...STANDARD.sign, failures: false } }
  const merchants = [
    { mchId: MCH_ID, key: KEY },
    { mchId: 'M2000', key: KEY, dialect: STANDARD },
  ]
  const sandbox = await startSandbox({ state: newStateFile(), merchants, dialect: silent })
  t.after(() => sandbox.stop())
  const { post } = merchantOf(sandbox.url)
  const refused = await post('/api/agentpay/apply', payout({ currency: 'USD' }))
  assert.deepEqual(Object.keys(refused.fields), ['retCode', 'retMsg'])
  assert.ok((await post('/api/agentpay/apply', payout())).signedWell)
  assert.ok((await post('/api/agentpay/apply', payout({ mchId: 'M2000', currency: 'USD' }))).signedWell)
})

test('a merchant’s own dialect survives a restart, until the merchant is put again without one', async (t) => {
  const state = newStateFile()
  const spoken: Spoken = { ...STANDARD, body: 'json' }
  const first = await startSandbox({ state, merchants: [{ mchId: MCH_ID, key: KEY, dialect: spoken }] })
  await first.stop()
  const sandbox = await startSandbox({ state, merchants: [] })
  t.after(() => sandbox.stop())
  const balance = (dialect: Spoken) =>
    speaking(sandbox.url, MCH_ID, dialect, async (client) => (await client.balance()).kind)
  assert.deepEqual([await balance(spoken), await balance(STANDARD)], ['balance', 'unknown'])
  assert.equal(await putMerchant(sandbox.url, { mchId: MCH_ID, key: KEY }), 200)
  assert.deepEqual([await balance(spoken), await balance(STANDARD)], ['unknown', 'balance'])
})

test('JSON is read as written, and refused if it is ambiguous', async (t) => {
  const merchants = [{ mchId: MCH_ID, key: KEY }]
  const dialect = { ...STANDARD, body: 'json' as const }
  const sandbox = await startSandbox({ state: newStateFile(), merchants, dialect })
  t.after(() => sandbox.stop())
  const ask = async (body: string | Uint8Array<ArrayBuffer>, path = '/api/agentpay/apply') => {
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${sandbox.url}${path}`, { method: 'POST', headers, body })
    return { http: response.status, ...((await response.json()) as { retCode: string; retMsg: string }) }
  }
  const { amount, ...rest } = payout()
  const written = (text: string) => {
    const signed = { ...rest, sign: sign({ ...rest, amount: text }, KEY) }
    return `{"amount":${text},${JSON.stringify(signed).slice(1)}`
  }
  for (const text of ['1e4', '10000.0', '9007199254741092.5']) {
    assert.equal((await ask(written(text))).retCode, 'AMOUNT_INVALID', text)
  }
  assert.equal((await ask(written('null'))).retCode, 'SIGN_ERROR')
  const twice = await ask(`${written('10000').slice(0, -1)},"\\u0061mount":20000}`)
  assert.deepEqual([twice.retCode, twice.retMsg], ['PARAM_ERROR', 'amount: was given more than once'])
  const padded = await ask(written('010000'))
  assert.deepEqual(
    [padded.http, padded.retCode, padded.retMsg],
    [400, 'PARAM_ERROR', 'amount: a number in JSON begins with no 0'],
  )
  const bytes = Buffer.from(written('10000').replace('Asha', 'As?a'))
  bytes[bytes.indexOf('?')] = 0xff
  for (const body of [bytes, '', '[]', 'null', '{"mchId":', written('{"amount":1}'), written('[10000]')]) {
    assert.deepEqual(
      await ask(body).then(({ http, retCode }) => [http, retCode]),
      [400, 'PARAM_ERROR'],
      String(body),
    )
  }
  const both = await ask(written('10000'), '/api/agentpay/apply?amount=20000')
  assert.deepEqual([both.http, both.retCode], [400, 'PARAM_ERROR'])
  assert.deepEqual(await merchantOf(sandbox.url).orders(), [])
  assert.equal((await ask(written('10000'))).retCode, 'SUCCESS')
})

test("the client's own dialect files are read, with what they extend; a wrong one is refused with every fault", () => {
  const write = (json: unknown) => {
    const file = `${newStateFile()}.json`
    writeFileSync(file, typeof json === 'string' ? json : JSON.stringify(json))
    return file
  }
  const own = (name: string) => readDialect(new URL(`../../dialects/${name}.json`, import.meta.url).pathname)
  const { paths, duplicateApply } = loadDialect('default')
  assert.deepEqual(own('default'), { ...STANDARD, paths, duplicateApply })
  assert.deepEqual(own('sandbox'), STANDARD)
  const base = write({ extends: 'sandbox', body: 'json', sign: { hexCase: 'lower', keySuffix: 'appSecret' } })
  const file = write({
    extends: base,
    sign: { keySuffix: 'key', emptyFields: { callbacks: true } },
    paths: { balance: '/own/balance' },
    leaseMs: 9,
  })
  assert.deepEqual(readDialect(file), {
    ...STANDARD,
    body: 'json',
    paths: { balance: '/own/balance' },
    sign: {
      ...STANDARD.sign,
      hexCase: 'lower',
      emptyFields: { requests: false, answers: false, callbacks: true },
    },
  })
  const { body, sign, duplicateApply: refused } = loadDialect(write({ extends: base }))
  const same = { body, sign, duplicateApply: refused, paths: {} }
  assert.deepEqual(same, readDialect(write({ extends: base })))
  const wrong: [json: unknown, ...named: RegExp[]][] = [
    [{ body: 'xml', sign: { sorted: 'name', algorithm: 'sha1' } }, /body: /, /sorted/, /sign\.algorithm: /],
    [
      { duplicateAplly: 'unknown', sing: {}, sign: { hexcase: 'lower' } },
      /duplicateAplly: is not known here/,
      /sing: is not known here/,
      /sign\.hexcase: is not known here/,
    ],
    [{ extends: 'other' }, /extends: /],
    [{ paths: { apply: 'apply', refund: '/r', balance: '/b?c=1' } }, /apply: /, /refund/, /balance: /],
    [{ paths: { apply: '/own', balance: '/own' } }, /paths\.apply: answers for apply and balance/],
    [{ paths: { balance: '/api/pay/query_order' } }, /paths\.balance: answers for payoutQuery and balance/],
    [{ paths: { apply: '/checkout/apply' } }, /paths\.apply: .*the sandbox itself/],
    [{ duplicateApply: 'paid' }, /duplicateApply: /],
    ['{', /cannot be read/],
    ['[]', /not a JSON object/],
  ]
  for (const [json, ...named] of wrong)
    for (const each of named) assert.throws(() => readDialect(write(json)), each)
  const loop = `${newStateFile()}.json`
  writeFileSync(loop, JSON.stringify({ extends: loop }))
  assert.throws(() => readDialect(loop), /extends itself/)
})
