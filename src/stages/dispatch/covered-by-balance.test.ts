import assert from 'node:assert/strict'
import { test } from 'node:test'
import { paise } from '../../domain/money.ts'
import { covered, type KnownFunds, spendable } from './covered-by-balance.ts'

const funds = (fields: Partial<KnownFunds> = {}): KnownFunds => ({
  available: paise(1_000_000n),
  snapshotInDoubt: paise(0),
  snapshotClaimed: paise(0),
  claimedTotal: paise(0),
  feeEstimate: paise(500n),
  feeShare: null,
  ...fields,
})

const amounts = (...all: number[]) => all.map((amount) => paise(amount))

test('payouts are taken in order, with fees, up to the first that does not fit', () => {
  assert.deepEqual(covered(amounts(400_000, 400_000, 400_000, 100), funds(), 0), {
    count: 2,
    cost: paise(801_000),
  })
})

test('a balance that is just enough covers it, one paisa less does not', () => {
  assert.equal(covered(amounts(999_500), funds(), 0).count, 1)
  assert.equal(covered(amounts(999_501), funds(), 0).count, 0)
})

test('an estimate beyond a tenth of the first amount keeps it back only while something is in flight', () => {
  const mistaken = funds({ feeEstimate: paise(300_000) })
  assert.deepEqual(covered(amounts(800_000, 100), mistaken, 0), { count: 1, cost: paise(1_100_000) })
  assert.equal(covered(amounts(800_000), mistaken, 1).count, 0)
  assert.equal(covered(amounts(1_000_001), mistaken, 0).count, 0)
  // One of a tenth may be right.
  const likely = funds({ available: paise(200_000), feeEstimate: paise(20_000) })
  assert.equal(covered(amounts(200_000), likely, 0).count, 0)
  assert.equal(covered(amounts(199_999), likely, 0).count, 1)
})

test('an estimate of at most ₹100 keeps even a small payout back until the balance covers both', () => {
  assert.equal(covered(amounts(3_700), funds({ available: paise(3_900) }), 0).count, 0)
  const most = funds({ available: paise(13_699), feeEstimate: paise(10_000) })
  assert.equal(covered(amounts(3_700), most, 0).count, 0)
  assert.equal(covered(amounts(3_700), { ...most, feeEstimate: paise(10_001) }, 0).count, 1)
})

test('it is reduced by the payouts in doubt when payoutd asked for it, and by all claimed since', () => {
  const spent = funds({
    snapshotInDoubt: paise(300_000),
    snapshotClaimed: paise(50_000),
    claimedTotal: paise(450_000),
  })
  assert.equal(covered(amounts(299_500), spent, 0).count, 1)
  assert.equal(covered(amounts(299_600), spent, 0).count, 0)
})

test('more in doubt than the balance covers nothing', () => {
  const doubtful = funds({ snapshotInDoubt: paise(2_000_000) })
  assert.deepEqual([covered(amounts(100), doubtful, 0).count, spendable(doubtful)], [0, 0n])
})
