import assert from 'node:assert/strict'
import { test } from 'node:test'
import { afterNotice, createPayin, FAILED, failed, PAID, type Payin, paid } from './payin.ts'

const NOW = Date.parse('2026-11-21T12:00:00Z')
const SCHEDULE = [60, 120, 180, 240, 300]
const TERMS = { fees: { flat: 0n, bps: 100n }, expiryMs: 900_000, settleMs: 5_000 }

const created = (amount = 10_000n, terms = TERMS): Payin =>
  createPayin(
    {
      id: 42,
      merchantId: 1,
      mchOrderNo: 'P1',
      amount,
      notifyUrl: 'http://n.test/',
      returnUrl: null,
    },
    terms,
    NOW,
  )
const scheduled = { status: PAID, scheduled: true } as const
const asked = { status: PAID, scheduled: false } as const

test('an unacknowledged payin is called back after 60, 120, 180, 240 and 300 s, then no more', () => {
  let payin = paid(created(), '611210000001', TERMS, NOW)
  const times: number[] = []
  while (payin.callbackAt !== null) {
    times.push((payin.callbackAt - NOW) / 1000)
    payin = afterNotice(payin, scheduled, false, SCHEDULE, payin.callbackAt)
  }
  assert.deepEqual(times, [0, 60, 180, 360, 600, 900])
  assert.equal(payin.callbacksSent, 6)
  assert.equal(payin.notifyStatus, 1)
})

test('an acknowledged callback ends the schedule, whether scheduled or asked for', () => {
  for (const notice of [scheduled, asked]) {
    const once = afterNotice(paid(created(), '611210000001', TERMS, NOW), scheduled, false, SCHEDULE, NOW)
    const payin = afterNotice(once, notice, true, SCHEDULE, NOW + 60_000)
    assert.equal(payin.callbackAt, null)
    assert.equal(payin.notifyStatus, 2)
  }
})

test('an unacknowledged callback that was asked for leaves the schedule as it was', () => {
  const payin = paid(created(), '611210000001', TERMS, NOW)
  const after = afterNotice(payin, asked, false, SCHEDULE, NOW)
  assert.equal(after.callbackAt, payin.callbackAt)
  assert.equal(after.callbackTries, 0)
  const told = afterNotice(payin, scheduled, true, SCHEDULE, NOW)
  const again = afterNotice(told, asked, false, SCHEDULE, NOW)
  assert.equal(again.callbackAt, null)
  assert.equal(again.notifyStatus, 2)
})

test('a callback with an outdated status counts for nothing', () => {
  const recovered = paid(failed(created(), 'expired', NOW), '611210000001', TERMS, NOW + 1000)
  const payin = afterNotice(recovered, { status: FAILED, scheduled: true }, true, SCHEDULE, NOW + 2000)
  assert.equal(payin.callbackAt, NOW + 1000)
  assert.equal(payin.notifyStatus, 0)
  assert.equal(payin.callbacksSent, 1)
  assert.equal(payin.errorMessage, null)
})

test('the fee of a payin is never more than its amount', () => {
  assert.equal(created(10_000n).fee, 100n)
  assert.equal(created(100n, { ...TERMS, fees: { flat: 500n, bps: 0n } }).fee, 100n)
})
