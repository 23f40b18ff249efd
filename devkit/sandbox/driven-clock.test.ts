import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type SandboxOptions, startSandbox } from './sandbox.ts'
import { KEY, MCH_ID, merchantOf, newStateFile, receiveCallbacks, until } from './testing.ts'

const HOUR_MS = 3_600_000

async function start(t: TestContext, options: Partial<SandboxOptions>) {
  const merchants = [{ mchId: MCH_ID, key: KEY }]
  const sandbox = await startSandbox({ state: newStateFile(), merchants, balance: 0n, ...options })
  t.after(() => sandbox.stop())
  const advance = async (json: unknown) => {
    const response = await fetch(`${sandbox.url}/_sandbox/clock`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(json),
    })
    return { status: response.status, said: (await response.json()) as { now?: number; error?: string } }
  }
  return { advance, merchant: merchantOf(sandbox.url) }
}

test('moving the clock forward settles payouts and repeats callbacks at once', async (t) => {
  const { notifyUrl, about } = await receiveCallbacks(t, () => [500, 'later'])
  const { advance, merchant } = await start(t, { settleMs: HOUR_MS, balance: 100_000n })
  await merchant.apply({ notifyUrl })
  await advance({ advanceMs: HOUR_MS - 60_000 })
  assert.equal((await merchant.query('ORDER1')).fields.status, 1)
  await advance({ advanceMs: 60_000 })
  assert.equal((await merchant.query('ORDER1')).fields.status, 2)
  for (const [sent, seconds] of [60, 120, 180, 240, 300].entries()) {
    await until(`callback ${sent + 1}`, async () => (await merchant.deliveries('ORDER1')).length === sent + 1)
    await advance({ advanceMs: seconds * 1000 })
  }
  await until('the last callback', async () => (await merchant.deliveries('ORDER1')).length === 6)
  const times = (await merchant.deliveries('ORDER1')).map(({ at }) => at)
  for (const [i, seconds] of [60, 120, 180, 240, 300].entries()) {
    assert.ok((times[i + 1] as number) - (times[i] as number) >= seconds * 1000)
  }
  await advance({ advanceMs: HOUR_MS })
  await merchant.apply({ notifyUrl, mchOrderNo: 'ORDER2' })
  await advance({ advanceMs: HOUR_MS })
  await until('another order is called back about', () => about('ORDER2').length === 1)
  assert.equal(about('ORDER1').length, 6)
})

test('a payin expires, and the money of a paid one becomes available, by this clock', async (t) => {
  const { advance, merchant } = await start(t, { payinExpiryMs: HOUR_MS, payinSettleMs: 2 * HOUR_MS })
  const { payOrderId } = (await merchant.create({ mchOrderNo: 'PAID' })).fields
  await merchant.create({ mchOrderNo: 'FORGOTTEN' })
  await merchant.press(String(payOrderId), 'pay')
  await advance({ advanceMs: HOUR_MS })
  assert.equal((await merchant.queryPayin('FORGOTTEN')).fields.status, 3)
  assert.equal((await merchant.balance()).unsettledAmount, 9_900)
  const { status, said } = await advance({ advanceMs: HOUR_MS })
  assert.equal(status, 200)
  assert.ok((said.now as number) >= Date.now() + 2 * HOUR_MS - 60_000)
  assert.equal((await merchant.balance()).availableAmount, 9_900)
})

test('the clock moves forward only, by whole milliseconds', async (t) => {
  const { advance } = await start(t, {})
  for (const wrong of [
    {},
    { advanceMs: -1 },
    { advanceMs: 1.5 },
    { advanceMs: '1' },
    { advanceMs: 1e12 },
    { by: 1 },
  ]) {
    const { status, said } = await advance(wrong)
    assert.equal(status, 400, JSON.stringify(wrong))
    assert.ok(said.error)
  }
})
