import assert from 'node:assert/strict'
import { test } from 'node:test'
import { paise } from '../../domain/money.ts'
import { explain } from './balance-change.ts'

const at = (balance: number, inFlight = 0) => ({
  at: 0,
  balanceAt: 0,
  balance: paise(balance),
  inFlight: paise(inFlight),
})
const verdict = (...given: Parameters<typeof explain>) => {
  const moved = explain(...given)
  return 'rest' in moved ? `${moved.kind} ${moved.rest}` : moved.kind
}

test('a balance that fell by what was paid is explained', () => {
  assert.equal(verdict(at(1_000), at(400), paise(600)), 'explained 0')
})

test('money that left without a payout is missing', () => {
  assert.equal(verdict(at(1_000), at(399), paise(600)), 'missing 1')
})

const returned = (amount: number, early = 0, late = 0) => ({
  reversals: 1,
  amount: paise(amount),
  early: paise(early),
  late: paise(late),
})

test('money that came back is explained, and hides no money that left', () => {
  assert.equal(verdict(at(1_000), at(450), paise(600), returned(50)), 'explained 0')
  assert.equal(verdict(at(1_000), at(400), paise(600), returned(50)), 'missing 50')
  assert.equal(verdict(at(1_000), at(460), paise(600), returned(50)), 'more 10')
})

test('money of an earlier payment may have come back before the first balance', () => {
  assert.equal(verdict(at(1_000), at(400), paise(600), returned(50, 50)), 'in-flight 0')
  assert.equal(verdict(at(1_000), at(399), paise(600), returned(50, 50)), 'missing 1')
  assert.equal(verdict(at(1_000), at(451), paise(600), returned(50, 50)), 'more 1')
})

test('money that is only just reported to be back may not be in the second balance yet', () => {
  assert.equal(verdict(at(1_000), at(400), paise(600), returned(50, 0, 50)), 'in-flight 0')
  assert.equal(verdict(at(1_000), at(399), paise(600), returned(50, 0, 50)), 'missing 1')
  assert.equal(verdict(at(1_000), at(400), paise(600), returned(50, 20, 30)), 'in-flight 0')
  assert.equal(verdict(at(1_000), at(451), paise(600), returned(50, 0, 50)), 'more 1')
})

test('money that came in is reported, and hides money that left', () => {
  assert.equal(verdict(at(1_000), at(450), paise(600)), 'more 50')
})

test('what was in flight at either end may be on either side', () => {
  // Deducted from the balance already, and not paid here yet.
  assert.equal(verdict(at(1_000), at(300, 100), paise(600)), 'in-flight 0')
  assert.equal(verdict(at(1_000), at(299, 100), paise(600)), 'missing 1')
  // Deducted before, and paid since.
  assert.equal(verdict(at(900, 100), at(400), paise(600)), 'in-flight 0')
  assert.equal(verdict(at(900, 100), at(401), paise(600)), 'more 1')
})

test('a gap that payouts in flight may fill is reported with the amount that may fill it', () => {
  const gapOf = (...given: Parameters<typeof explain>) => {
    const moved = explain(...given)
    return 'gap' in moved && [moved.gap, moved.allowance]
  }
  assert.deepEqual(gapOf(at(1_000, 5), at(300, 170), paise(600)), [100n, 170n])
  assert.deepEqual(gapOf(at(900, 120), at(400, 5), paise(600)), [-100n, 120n])
  assert.equal(verdict(at(1_000, 70), at(400, 70), paise(600)), 'explained 0')
})
