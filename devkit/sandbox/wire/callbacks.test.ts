import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../src/platform/running/clock.ts'
import { type SandboxOptions, startSandbox } from '../sandbox.ts'
import { KEY, MCH_ID, merchantOf, newStateFile, receiveCallbacks, until } from '../testing.ts'

const start = (options: Partial<SandboxOptions>) =>
  startSandbox({
    state: newStateFile(),
    merchants: [{ mchId: MCH_ID, key: KEY }],
    settleMs: 0,
    ...options,
  })

test('a callback is repeated until it is answered with the plain text success', async (t) => {
  const answers: [number, string][] = [
    [500, 'success'],
    [200, 'SUCCESS, thank you'],
    [302, 'success'],
    [200, 'x'.repeat(5_000)],
    [200, 'success'],
  ]
  const { notifyUrl, received } = await receiveCallbacks(t, (_, nth) => answers[nth - 1] ?? [200, 'success'])
  const sandbox = await start({ callbackRetries: [0, 0, 0, 0, 0] })
  t.after(() => sandbox.stop())
  const merchant = merchantOf(sandbox.url)
  await merchant.apply({ notifyUrl })
  await until('it is acknowledged', async () => (await merchant.orders())[0]?.callbacksAcknowledged === 1)
  assert.equal(received.length, 5)
  assert.equal(new Set(received.map(({ params }) => JSON.stringify(params))).size, 1)
  const { callbacksSent } = (await merchant.orders())[0] ?? {}
  assert.equal(callbacksSent, 5)
})

test('after the schedule the callback is given up, and the order stays as it is', async (t) => {
  const { notifyUrl, received } = await receiveCallbacks(t, () => [401, 'bad signature'])
  const sandbox = await start({ callbackRetries: [0, 0] })
  t.after(() => sandbox.stop())
  const merchant = merchantOf(sandbox.url)
  await merchant.apply({ notifyUrl })
  await until('it is given up', async () => {
    const { orders } = await merchant.books()
    return orders.success === 1 && orders.callbacksOutstanding === 0
  })
  assert.equal(received.length, 3)
  assert.equal((await merchant.query('ORDER1')).fields.notifyStatus, 1)
})

test('the schedule of a callback survives a restart', async (t) => {
  const state = newStateFile()
  let answer: [number, string] = [503, 'come again']
  const { notifyUrl, about } = await receiveCallbacks(t, () => answer)
  const minutesLater = (minutes: number) => ({
    ...systemClock,
    now: () => systemClock.now() + minutes * 60_000,
  })
  const first = await start({ state, callbackRetries: [3600] })
  const merchant = merchantOf(first.url)
  await merchant.apply({ notifyUrl })
  await until('the first callback was refused', async () => (await merchant.orders())[0]?.callbacksSent === 1)
  await first.stop()

  answer = [200, 'success']
  const early = await start({ state, clock: minutesLater(55) })
  await merchantOf(early.url).apply({ notifyUrl, mchOrderNo: 'ORDER2' })
  await until('another order is called back about', () => about('ORDER2').length === 1)
  await early.stop()
  assert.equal(about('ORDER1').length, 1)

  const due = await start({ state, clock: minutesLater(60) })
  t.after(() => due.stop())
  const again = merchantOf(due.url)
  await until('it is acknowledged', async () => (await again.orders())[0]?.callbacksAcknowledged === 1)
  assert.equal(about('ORDER1').length, 2)
})

test('a notifyUrl keeps its own query', async (t) => {
  const { notifyUrl, received } = await receiveCallbacks(t)
  const sandbox = await start({})
  t.after(() => sandbox.stop())
  await merchantOf(sandbox.url).apply({ notifyUrl: `${notifyUrl}?branch=7` })
  await until('it is called back about', () => received.length === 1)
  assert.equal(received[0]?.params.branch, '7')
  assert.equal(received[0]?.params.status, '2')
})
