import assert from 'node:assert/strict'
import { test } from 'node:test'
import { request } from 'undici'
import { sql } from '../src/platform/postgres/postgres.ts'
import { eventually } from '../src/platform/running/eventually.fixture.ts'
import { openCallbackEndpoints } from './callback-endpoints.ts'
import { anomaliesOf, payoutsOf } from './ledger.ts'

/** An empty parameter of the gateway's own is not part of its signature, and anybody may have added it. */
const UNSIGNED = '&extra='

const toBeAsked = sql<object, { orderNo: string }>`select order_no from lost_callbacks`

async function doubtful(t: Parameters<typeof openCallbackEndpoints>[0], kind: 'payout' | 'payin') {
  const opened = await openCallbackEndpoints(t)
  const { url, fields, queryLost } = opened.endpoints[kind]
  return {
    ...opened,
    asked: (meanwhile?: () => Promise<void>) => queryLost('order', meanwhile),
    async say(over: Record<string, string>, beside = '') {
      const query = opened.sign(Object.entries({ ...fields, ...over }))
      const answer = await request(`${url}?${query}${beside}`, { method: 'POST' })
      assert.equal(await answer.body.text(), 'success')
    },
  }
}

test('after a doubtful callback that a paid payout came back, payoutd queries and publishes the answer', async (t) => {
  const { ledger, say, asked } = await doubtful(t, 'payout')
  await say({})
  assert.equal((await payoutsOf(ledger))[0]?.state, 'paid')
  await say({ status: '3', errorMessage: 'returned' }, UNSIGNED)
  assert.deepEqual(await anomaliesOf(ledger), [])
  await eventually('a question', async () => (await asked()) === 1, 10_000)
  assert.match((await anomaliesOf(ledger)).join(), /^contradiction/)
  assert.equal(await asked(), 0)
})

test('a callback that comes during the query causes another one, as the answer may be older', async (t) => {
  const { ledger, say, asked } = await doubtful(t, 'payout')
  await say({})
  await say({}, UNSIGNED)
  const came = { status: '3', errorMessage: 'returned' }
  const again = () => say(came, UNSIGNED)
  await eventually('a question', async () => (await asked(again)) === 1, 10_000)
  assert.equal((await ledger.db.run(toBeAsked, {})).length, 1)
  await eventually('the next', async () => (await asked()) === 1, 10_000)
  assert.deepEqual(await ledger.db.run(toBeAsked, {}), [])
})

test('an order that is queried anyway gets no additional query', async (t) => {
  const { ledger, say } = await doubtful(t, 'payout')
  await say({}, UNSIGNED)
  assert.equal((await payoutsOf(ledger))[0]?.state, 'processing')
  assert.deepEqual(await ledger.db.run(toBeAsked, {}), [])
})

test('a doubtful callback that a paid payin failed causes a query, too', async (t) => {
  const { ledger, say, asked } = await doubtful(t, 'payin')
  await say({})
  await say({ status: '3' }, UNSIGNED)
  assert.equal((await ledger.db.run(toBeAsked, {})).length, 1)
  await eventually('a question', async () => (await asked()) === 1, 10_000)
  assert.deepEqual(await ledger.db.run(toBeAsked, {}), [])
})
