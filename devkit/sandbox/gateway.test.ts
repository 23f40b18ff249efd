import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { silentLogger } from '../../src/platform/log.ts'
import { systemClock } from '../../src/platform/running/clock.ts'
import { addAdminRoutes } from './admin.ts'
import { DrivenClock } from './driven-clock.ts'
import { Faults } from './faults.ts'
import { Gateway } from './gateway.ts'
import { createOperations } from './operations.ts'
import { addCheckoutRoutes } from './payins/checkout.ts'
import { PayinNotices } from './payins/payin-notices.ts'
import { PayinRecords } from './payins/payin-records.ts'
import { Payins } from './payins/payins.ts'
import { Orders } from './payouts/orders.ts'
import { Payments } from './payouts/payments.ts'
import { Payouts } from './payouts/payouts.ts'
import { createSandboxServer } from './server.ts'
import { Books } from './state/books.ts'
import { Merchants } from './state/merchants.ts'
import { Sequence } from './state/sequence.ts'
import { Store } from './state/store.ts'
import { KEY, MCH_ID, newStateFile, payin, payout, sign, until } from './testing.ts'
import { Deliveries } from './wire/deliveries.ts'
import { STANDARD } from './wire/dialect.ts'
import { Exchanges } from './wire/exchanges.ts'

/** A gateway whose store commits only on request, and which records callbacks instead of sending them. */
function assemble(t: TestContext) {
  const clock = new DrivenClock(systemClock)
  const store = new Store(newStateFile(), 3_600_000)
  const books = new Books(store)
  const merchants = new Merchants({ store, books, openingBalance: 1_000_000n, dialect: STANDARD })
  merchants.put({ mchId: MCH_ID, key: KEY })
  store.flush()
  const orders = new Orders(store)
  const payins = new PayinRecords(store)
  const deliveries = new Deliveries(store)
  const sequence = new Sequence(store)
  const sent: string[] = []
  const sender = {
    send: async (_notifyUrl: string, { mchOrderNo = '' }: Record<string, string>) => {
      sent.push(mchOrderNo)
      return { acknowledged: true, at: 0, httpStatus: 200, answer: 'success', error: null, durationMs: 1 }
    },
  }
  const kept = { store, sequence, books, merchants, deliveries, sender, clock }
  const fees = { flat: 500n, bps: 0n }
  const payouts = new Payouts({ ...kept, orders, terms: { fees, settleMs: 0, callbackRetries: [] } })
  const notices = new PayinNotices({ ...kept, payins, retries: [] })
  const payments = new Payments(store)
  const terms = { fees, expiryMs: 60_000, settleMs: 0 }
  const lives = new Payins({ ...kept, payins, payments, notices, terms })
  t.after(() => {
    lives.stop()
    notices.stop()
    payouts.stop()
    store.close()
  })
  const faults = new Faults()
  const { signal } = new AbortController()
  const payUrl = (payOrderId: string) => `http://sandbox.test/checkout/${payOrderId}`
  const operations = createOperations({ payouts, payins: lives, notices, books, payUrl })
  const parts = {
    store,
    merchants,
    dialect: STANDARD,
    operations,
    payouts,
    exchanges: new Exchanges(),
    faults,
    clock,
    log: silentLogger,
    latencyMs: 0,
    signal,
  }
  const gateway = new Gateway(parts)
  const apply = (over: Record<string, string> = {}) => {
    const params = payout(over)
    return gateway.answer('/api/agentpay/apply', {
      params: { ...params, sign: sign(params, KEY) },
      repeated: [],
      from: 'form' as const,
    })
  }
  const server = createSandboxServer(gateway, silentLogger)
  addCheckoutRoutes(server, { store, merchants, payins: lives, records: payins, payments, clock })
  addAdminRoutes(server, { store, merchants, faults, clock })
  t.after(() => server.close())
  return { store, orders, sent, apply, gateway, server }
}

async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await turn()
}

test('an apply, even a repeated one, is answered only once the order is in the file', async (t) => {
  const { store, apply } = assemble(t)
  let answered = 0
  const answers = [apply(), apply()].map(async (reply) => {
    const { body } = (await reply) as { body: string }
    answered += 1
    return JSON.parse(body).retCode
  })
  await turns()
  assert.equal(answered, 0)
  store.flush()
  assert.deepEqual(await Promise.all(answers), ['SUCCESS', 'DUPLICATE_ORDER'])
})

test('a payin, a press on its page and a new merchant are answered only once they are in the file', async (t) => {
  const { store, gateway, server } = assemble(t)
  const afterFlush = async <T>(ask: () => Promise<T>): Promise<T> => {
    let answered = false
    const answer = ask().finally(() => {
      answered = true
    })
    await turns()
    assert.equal(answered, false)
    store.flush()
    return await answer
  }
  const params = payin()
  const signed = { params: { ...params, sign: sign(params, KEY) }, repeated: [], from: 'form' as const }
  const { body } = (await afterFlush(() => gateway.answer('/api/pay/neworder', signed))) as { body: string }
  const { payOrderId } = JSON.parse(body)
  const accept = { accept: 'application/json' }
  const button = `/checkout/${payOrderId}/pay-untold`
  const pressed = await afterFlush(() => server.inject({ method: 'POST', url: button, headers: accept }))
  assert.equal(pressed.statusCode, 200)
  const wanted = { mchId: 'M2', key: 'k' }
  const created = await afterFlush(() =>
    server.inject({ method: 'POST', url: '/_sandbox/merchants', payload: wanted }),
  )
  assert.equal(created.statusCode, 201)
})

test('a callback leaves only once the end of its order is in the file', async (t) => {
  const { store, orders, sent, apply } = assemble(t)
  const answer = apply()
  store.flush()
  await answer
  await until('the order is settled', () => orders.byNumber(1, 'ORDER1')?.status === 2)
  await turns()
  assert.deepEqual(sent, [])
  store.flush()
  await until('the callback left', () => sent.length === 1)
})

test('if the file cannot be written, the answer says so and is not a success', async (t) => {
  const { store, apply } = assemble(t)
  assert.throws(() =>
    store.write(() => {
      throw new Error('disk full')
    }),
  )
  const reply = (await apply()) as { status: number; body: string }
  assert.equal(reply.status, 500)
  assert.equal(JSON.parse(reply.body).retCode, 'SYSTEM_ERROR')
})
