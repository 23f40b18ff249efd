import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idIn } from '../state/sequence.ts'
import { feeOf } from '../state/terms.ts'
import { behaviourOf } from '../test-accounts.ts'
import { acceptOrder, afterDelivery, FAILED, type Order, PROCESSING, SUCCESS, settle } from './order.ts'
import { agentpayOrderId, utr } from './order-fields.ts'

const NOW = Date.parse('2026-11-21T12:00:00Z')
const SCHEDULE = [60, 120, 180, 240, 300]

function accepted(accountNo = '50100123456789'): Order {
  return acceptOrder(
    {
      id: 42,
      merchantId: 1,
      mchOrderNo: 'O1',
      amount: 10_000n,
      accountNo,
      extra: '{"value":"HDFC0001234"}',
      notifyUrl: 'http://n.test/',
    },
    { fee: 500n, behaviour: behaviourOf(accountNo), settleMs: 300, tries: 0 },
    NOW,
  )
}

test('an unacknowledged order is called back six times, then no more', () => {
  const order = accepted()
  settle(order, NOW)
  const times: number[] = []
  while (order.callbackAt !== null) {
    times.push((order.callbackAt - NOW) / 1000)
    afterDelivery(order, false, SCHEDULE, order.callbackAt)
  }
  assert.deepEqual(times, [0, 60, 180, 360, 600, 900])
  assert.equal(order.callbacksSent, 6)
  assert.equal(order.callbacksAcknowledged, 0)
})

test('an acknowledged callback is not repeated, and the order’s next one follows', () => {
  const order = accepted('9999000003')
  settle(order, NOW)
  afterDelivery(order, false, SCHEDULE, NOW)
  afterDelivery(order, true, SCHEDULE, NOW + 60_000)
  assert.equal(order.callbackAt, NOW + 60_000)
  afterDelivery(order, false, SCHEDULE, NOW + 60_000)
  assert.equal(order.callbackAt, NOW + 120_000)
  afterDelivery(order, true, SCHEDULE, NOW + 120_000)
  assert.equal(order.callbackAt, null)
})

test('a forged callback is sent once, whatever the answer', () => {
  for (const acknowledged of [true, false]) {
    const order = accepted('9999000013')
    settle(order, NOW)
    afterDelivery(order, acknowledged, SCHEDULE, NOW)
    assert.equal(order.callbacks[order.callbackIndex], 'truth')
    assert.equal(order.callbackAt, NOW)
  }
})

test('an order has a UTR once it is paid, and never if it failed', () => {
  const paid = accepted()
  assert.equal(paid.status, PROCESSING)
  assert.equal(utr(paid), null)
  settle(paid, NOW)
  assert.equal(paid.status, SUCCESS)
  assert.equal(utr(paid), '611210000042')
  const failed = accepted('9999000001')
  settle(failed, NOW)
  assert.equal(failed.status, FAILED)
  assert.equal(failed.timesPaid, 0)
  assert.equal(utr(failed), null)
})

test('a platform order number leads back to its order', () => {
  const number = agentpayOrderId(accepted())
  assert.equal(number, 'AP202611210000000042')
  assert.equal(idIn(number, 'AP'), 42)
  for (const other of ['', '42', 'AP20261121000000004', `${number}0`, number.replace('AP', 'PI')])
    assert.equal(idIn(other, 'AP'), undefined)
})

test('a fee of basis points is rounded half up to whole paise', () => {
  const fee = (amount: bigint, flat: bigint, bps: bigint) => feeOf(amount, { flat, bps })
  assert.equal(fee(10_000n, 500n, 0n), 500n)
  assert.equal(fee(10_000n, 0n, 25n), 25n)
  assert.equal(fee(100n, 0n, 49n), 0n)
  assert.equal(fee(100n, 0n, 50n), 1n)
  assert.equal(fee(999_999_999_999_900n, 1n, 10_000n), 999_999_999_999_901n)
})
