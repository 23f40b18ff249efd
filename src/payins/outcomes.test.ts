import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, type TestContext, test } from 'node:test'
import { anomaliesOf, readerOf } from '../../test/ledger.ts'
import { brokenPayins, payinLedger, storedPayins } from '../../test/payins.ts'
import type { Payin } from '../domain/payin/payin.ts'
import { parsePayinCallback } from '../gateway/callbacks/callback.ts'
import { KeptCallbacks } from '../ledger/callbacks/kept-callbacks.ts'
import { createHttpServer } from '../platform/http.ts'
import { silentLogger } from '../platform/log.ts'
import { Metrics } from '../platform/metrics.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { systemClock } from '../platform/running/clock.ts'
import { callbackPath } from '../stages/outcomes/callback-endpoint.ts'
import { payinCallbackEndpoint } from './outcomes.ts'

/** Signs as the gateway README says, without the product's own code; plain ASCII values only. */
function signed(fields: Record<string, string>, key: string): string {
  const pairs = Object.entries(fields)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}=${value}&`)
    .sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1))
  const text = `${pairs.join('')}key=${key}`
  const sign = createHash('md5').update(text).digest('hex').toUpperCase()
  return new URLSearchParams({ ...fields, sign }).toString()
}

/** Every parameter of the contract's "Payin callback". */
const paidFields = ({ payinId, payOrderId }: Payin, fields: Record<string, string> = {}) => ({
  payOrderId: payOrderId ?? '',
  paySuccTime: '1795262400000',
  amount: '50000',
  mchId: '1000100',
  mchOrderNo: payinId,
  channelPayNo: '632611200001',
  backType: '2',
  channelCode: 'upi',
  status: '2',
  errorMessage: '',
  ...fields,
})

const oddUtrs = sql<
  object,
  { payoutId: string | null; orderNo: string; times: number; detail: string }
>`select payout_id, order_no, times, detail from anomalies where kind = 'utr-of-two'`

async function endpoint(t: TestContext) {
  const opened = await payinLedger(t)
  const merchant = opened.config.merchants.get('acme')
  assert.ok(merchant)
  const { key } = merchant
  const metrics = new Metrics()
  const callbacks = payinCallbackEndpoint({
    ...opened.outcomeDeps,
    readers: new Map([['acme', readerOf(merchant, parsePayinCallback)]]),
    kept: new KeptCallbacks({ db: opened.ledger.db, sealing: opened.config.sealing, kind: 'payin' }),
    clock: systemClock,
    log: silentLogger,
    took: metrics.seconds('callback_seconds', 'test', []),
    answered: metrics.counter('callbacks_total', 'test', ['merchant', 'answer']),
  })
  const server = createHttpServer()
  callbacks.routes(server)
  t.after(() => server.close())
  const call = async (query: string, method: 'GET' | 'POST' = 'POST', merchantId = 'acme') => {
    const { statusCode, body } = await server.inject({
      method,
      url: `${callbackPath('payin', merchantId)}?${query}`,
    })
    return [statusCode, body] as const
  }
  const states = async () => (await opened.ledger.db.run(storedPayins, {})).map(({ state }) => state)
  return { ...opened, key, call, states, metrics }
}

describe('the callback endpoint of payins', () => {
  for (const method of ['POST', 'GET'] as const) {
    test(`a ${method} callback ends the payin, and gets success once it is stored`, async (t) => {
      const { create, key, call, states } = await endpoint(t)
      const payin = await create('order-7')
      assert.deepEqual(await call(signed(paidFields(payin), key), method), [200, 'success'])
      assert.deepEqual(await states(), ['paid'])
    })
  }

  test('a hundred copies of a callback at once are one transition, and each gets success', async (t) => {
    const { ledger, create, key, call } = await endpoint(t)
    const query = signed(paidFields(await create('order-7')), key)
    const answers = await Promise.all(Array.from({ length: 100 }, () => call(query)))
    assert.ok(answers.every(([status]) => status === 200))
    assert.deepEqual(
      (await ledger.db.run(storedPayins, {})).map(({ state, version }) => [state, version]),
      [['paid', 3]],
    )
    assert.deepEqual(await ledger.db.run(brokenPayins, {}), [])
  })

  test('a wrong signature gets 401, is counted, and changes nothing', async (t) => {
    const { create, key, call, states, metrics } = await endpoint(t)
    const payin = await create('order-7')
    assert.deepEqual(await call(signed(paidFields(payin), `${key}x`)), [401, 'bad signature'])
    const changed = signed(paidFields(payin, { status: '3' }), key).replace('status=3', 'status=2')
    assert.equal((await call(changed))[0], 401)
    assert.deepEqual(await states(), ['open'])
    assert.match(await metrics.registry.metrics(), /callbacks_total\{merchant="acme",answer="401"\} 2/)
  })

  test('an unknown merchant gets 404, and a request that is no callback 400', async (t) => {
    const { key, call } = await endpoint(t)
    assert.equal((await call(signed({ status: '2' }, key), 'POST', 'stranger'))[0], 404)
    assert.equal((await call(''))[0], 400)
    assert.equal((await call('amount=%ff&sign=1'))[0], 400)
  })

  test('a well-signed report that does not fit is kept as an anomaly and gets success', async (t) => {
    const { ledger, create, key, call, states } = await endpoint(t)
    const a = await create('a')
    const b = await create('b')
    const odd = [
      paidFields(a, { mchOrderNo: 'SOMEBODYELSE' }),
      paidFields(a, { amount: '49900' }),
      paidFields(a, { amount: '5e4' }),
      paidFields(a, { mchId: '1000101' }),
      paidFields(a, { payOrderId: 'POTHER' }),
    ]
    for (const fields of odd) assert.deepEqual(await call(signed(fields, key)), [200, 'success'])
    await call(signed(paidFields(b), key))
    await call(signed(paidFields(b, { status: '3', errorMessage: 'reversed' }), key))
    assert.deepEqual((await states()).sort(), ['paid', 'review'])
    assert.deepEqual((await anomaliesOf(ledger)).sort(), [
      'amount-mismatch',
      'amount-mismatch',
      'contradiction',
      'merchant-mismatch',
      'order-id-mismatch',
      'unknown-order',
    ])
  })

  test('a UTR that another payin has is an anomaly that names both, and changes nothing', async (t) => {
    const { ledger, create, key, call, states } = await endpoint(t)
    const [first, second, third] = [await create('order-7'), await create('order-8'), await create('order-9')]
    await call(signed(paidFields(first, { channelPayNo: 'HDFC0001' }), key))
    for (let said = 0; said < 3; said++) {
      await call(signed(paidFields(second, { channelPayNo: 'hdfc0001' }), key))
      await call(signed(paidFields(third, { channelPayNo: 'HDFC0002' }), key))
    }
    assert.deepEqual(await ledger.db.run(oddUtrs, {}), [
      {
        ...{ payoutId: null, orderNo: second.payinId, times: 1 },
        detail: `payin ${second.payinId} of acme has UTR hdfc0001, which payin ${first.payinId} of acme also has`,
      },
    ])
    assert.deepEqual(await states(), ['paid', 'paid', 'paid'])
    assert.deepEqual(await ledger.db.run(brokenPayins, {}), [])
  })

  test('while the store is down it answers 503, so that the gateway sends the callback again', async (t) => {
    const { ledger, create, key, call, states } = await endpoint(t)
    const query = signed(paidFields(await create('order-7')), key)
    const { db } = ledger
    ledger.db = { ...db, transaction: () => Promise.reject(new Error('connection refused')) }
    assert.equal((await call(query))[0], 503)
    ledger.db = db
    assert.deepEqual(await states(), ['open'])
    assert.deepEqual(await call(query), [200, 'success'])
  })
})
