import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { paise } from '../money.ts'
import { estimatedFees, type Fees, feesAfter, oddFee } from './fee.ts'

const begin = (feeEstimate: number): Fees => ({ feeEstimate: paise(feeEstimate), feeShare: null })
const after = (fees: Fees, answers: readonly (readonly [amount: number, fee: number])[]): Fees =>
  answers.reduce((each, [amount, fee]) => feesAfter(each, paise(amount), paise(fee)) ?? each, fees)
const times = (count: number, amount: number, fee: number) =>
  Array.from({ length: count }, () => [amount, fee] as const)

test('a small payout does not inherit the fee of one large payout, nor a large one that of a small one', () => {
  const percent = after(begin(0), [[100_000_000, 1_000_000]])
  assert.deepEqual(
    [estimatedFees(percent, 10_000n), estimatedFees(percent, 100_000_000n)],
    [100n, 1_000_000n],
  )
  const flat = after(begin(0), [[10_000, 500]])
  assert.equal(estimatedFees(flat, 100_000_000n), 500n)
})

test('the estimate of many payouts is no less than those of each together', () => {
  const fees = after(begin(0), [[100_000_000, 1_000_001]])
  for (const amount of [101n, 9_999n, 10_001n])
    assert.ok(estimatedFees(fees, 27n * amount, 27) >= 27n * estimatedFees(fees, amount))
})

test('an estimate follows falling fees, flat and percentage separately', () => {
  const flat = after(begin(5_000), times(10, 100_000, 500))
  assert.ok(estimatedFees(flat, 100_000n) <= 1_000n)
  const percent = after(after(begin(0), [[10_000_000, 500_000]]), times(10, 10_000, 50))
  assert.ok(estimatedFees(percent, 10_000n) <= 100n)
  const mistaken = after(begin(0), [[10_000_000, 10_000_000], ...times(20, 10_000, 500)])
  assert.ok(estimatedFees(mistaken, 10_000n) <= 1_000n)
})

test('after any history, an answer leaves an estimate for like payouts that covers its fee, and lowers one above twice the fee', () => {
  /** A share cannot follow below this: a millionth of the amount, and a started paisa counts whole. */
  const finest = (amount: number): bigint => BigInt(amount) / 1_000_000n + 2n
  const answers = fc.array(fc.tuple(fc.integer({ min: 1, max: 10 ** 10 }), fc.nat(10 ** 10)), {
    minLength: 1,
  })
  fc.assert(
    fc.property(fc.nat(10_000), answers, (first, all) => {
      let fees = begin(first)
      for (const [amount, fee] of all) {
        if (oddFee(paise(fee), paise(amount))) continue
        const before = estimatedFees(fees, BigInt(amount))
        fees = after(fees, [[amount, fee]])
        const now = estimatedFees(fees, BigInt(amount))
        assert.ok(now >= fee && (before <= 2n * BigInt(fee) + finest(amount) || now < before))
      }
    }),
    {
      examples: [
        [
          0,
          [
            [2, 2],
            [1, 0],
          ],
        ],
      ],
    },
  )
})

test('a fee above the amount is an anomaly and estimates nothing, except the flat fee of a tiny payout', () => {
  assert.equal(feesAfter(begin(500), paise(10_000), paise(999_999_999_999_999_999n)), null)
  assert.equal(oddFee(paise(1_000_000), paise(10_001))?.kind, 'fee-above-amount')
  assert.equal(oddFee(paise(500), paise(100)), null)
})
