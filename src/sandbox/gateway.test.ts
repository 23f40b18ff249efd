import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { systemClock } from '../platform/clock.ts'
import { silentLogger } from '../platform/log.ts'
import { Books } from './books.ts'
import { Gateway } from './gateway.ts'
import { Merchants } from './merchants.ts'
import { Orders } from './orders.ts'
import { Payouts } from './payouts.ts'
import { sign } from './sign.ts'
import { Store } from './store.ts'
import { KEY, MCH_ID, newStateFile, payout, until } from './testing.ts'

/** A gateway whose store commits only when told to, and which records callbacks instead of sending them. */
function assemble(t: TestContext) {
  const clock = systemClock
  const store = new Store(newStateFile(), 3_600_000)
  const books = new Books(store)
  const merchants = new Merchants(store, books, [{ mchId: MCH_ID, key: KEY }], 1_000_000n)
  store.flush()
  const orders = new Orders(store)
  const sent: string[] = []
  const sender = {
    send: async ({ mchOrderNo }: { mchOrderNo: string }) => {
      sent.push(mchOrderNo)
      return true
    },
  }
  const terms = { feeFlat: 500n, feeBps: 0n, settleMs: 0, callbackRetries: [] }
  const payouts = new Payouts({ store, orders, books, merchants, sender, clock, terms })
  t.after(() => {
    payouts.stop()
    store.close()
  })
  const { signal } = new AbortController()
  const parts = { store, books, merchants, payouts, clock, log: silentLogger, latencyMs: 0, signal }
  const gateway = new Gateway(parts)
  const apply = (over: Record<string, string> = {}) => {
    const params = payout(over)
    return gateway.apply({ params: { ...params, sign: sign(params, KEY) }, repeated: [] })
  }
  return { store, orders, sent, apply }
}

async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await turn()
}

test('an apply is answered only once the order is in the file, a repetition of it too', async (t) => {
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

test('when the file cannot be written the answer says so, and is no success', async (t) => {
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
