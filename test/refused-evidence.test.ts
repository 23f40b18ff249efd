import assert from 'node:assert/strict'
import { test } from 'node:test'
import { request } from 'undici'
import { createPayin, recoverPayin } from '../src/payins/collect.ts'
import { type Sql, sql } from '../src/platform/postgres/postgres.ts'
import { openCallbackEndpoints } from './callback-endpoints.ts'
import { outboxMessages } from './outbox-messages.ts'
import { payinLedger, REQUEST } from './payins.ts'

type Told = { orderNo: string; source: string; detail: string; times: number; messages: number }
const told = sql<object, Told>`
  select order_no, source, detail, times,
    (select count(*)::int from ${outboxMessages} where event_id = anomaly_id) as messages
  from anomalies where kind = 'not-stored'`

const DETAIL = 'the database refuses to store this report (SQLSTATE 23514), so the report changes nothing'

const refuses: Record<'payout' | 'payin', Sql<object, never>> = {
  payout: sql<object>`alter table payouts add constraint odd check (utr <> 'REFUSED')`,
  payin: sql<object>`alter table payins add constraint odd check (utr <> 'REFUSED')`,
}

for (const kind of ['payout', 'payin'] as const) {
  test(`a ${kind} callback that the database refuses is 503 and one anomaly, however often it comes`, async (t) => {
    const { ledger, endpoints, sign } = await openCallbackEndpoints(t)
    const { url, fields } = endpoints[kind]
    await ledger.db.run(refuses[kind], {})
    const refused = sign(Object.entries({ ...fields, channelPayNo: 'REFUSED' }))
    for (let i = 0; i < 2; i++) {
      const answer = await request(`${url}?${refused}`, { method: 'POST' })
      assert.deepEqual([answer.statusCode, await answer.body.text()], [503, 'not stored, come again'])
    }
    const { mchOrderNo: orderNo } = fields
    assert.deepEqual(await ledger.db.run(told, {}), [
      { orderNo, source: 'CALLBACK', detail: DETAIL, times: 2, messages: 1 },
    ])
  })
}

const refusesNamed = sql<object>`alter table payins add constraint odd check (pay_order_id is null)`

test('the answer to a creation that the database refuses is an anomaly', async (t) => {
  const { ledger, collect } = await payinLedger(t)
  await ledger.db.run(refusesNamed, {})
  const wanted = { merchantId: 'acme', idempotencyKey: 'order-7', request: REQUEST, traceparent: null }
  await assert.rejects(createPayin(wanted, collect), { code: '23514' })
  const [{ source, detail } = {} as Told, ...others] = await ledger.db.run(told, {})
  assert.deepEqual([source, detail, others], ['CREATE', DETAIL, []])
})

const asked = sql<object>`update payins set queries = 3`
const refusesUnasked = sql<object>`alter table payins add constraint odd check (queries > 0)`

test('the answer to a UTR recovery that the database refuses is an anomaly', async (t) => {
  const { ledger, collect, create } = await payinLedger(t)
  const payin = await create('order-7')
  await ledger.db.run(asked, {})
  await ledger.db.run(refusesUnasked, {})
  await assert.rejects(recoverPayin(payin, '632611200001', collect), { code: '23514' })
  assert.deepEqual(await ledger.db.run(told, {}), [
    { orderNo: payin.payinId, source: 'RECOVERY', detail: DETAIL, times: 1, messages: 1 },
  ])
})
