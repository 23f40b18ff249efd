import { formatRupees, type Paise, paise } from '../money.ts'
import type { Anomaly } from './payout.ts'

/** What recent answers show about a merchant's fees. The expected fee of a payout is the lower of the two. */
export type Fees = {
  /** Paise per payout. */
  feeEstimate: Paise
  /** Millionths of the amount; null: no answer has shown it yet. */
  feeShare: bigint | null
}

const MILLION = 1_000_000n
/** A flat fee may exceed the amount of a payout that only tests a bank account. */
const MOST_BELIEVED = 10_000n

const ceil = (dividend: bigint, divisor: bigint): bigint => (dividend + divisor - 1n) / divisor
const least = (a: bigint, b: bigint): bigint => (a < b ? a : b)
const most = (a: bigint, b: bigint): bigint => (a > b ? a : b)

/** At most, in paise, for `count` payouts of `amount` paise together. For one payout SQL computes the same (estimated-fee.ts). */
export function estimatedFees({ feeEstimate, feeShare }: Fees, amount: bigint, count = 1): Paise {
  const flat = BigInt(count) * feeEstimate
  if (feeShare === null) return paise(flat)
  // Each of them begins a paisa of its own.
  return paise(least(flat, ceil(amount * feeShare, MILLION) + BigInt(count - 1)))
}

/**
 * The estimates after an answer with a fee; null: they stay. A fee above the estimate raises both to it. A fee below half of
 * the estimate lowers the one that it came from by half the difference. So they follow a flat fee, a percentage and changes
 * of either. A payout unlike any before is expected to cost the lower of the two: the gateway itself reports what the
 * balance does not cover.
 */
export function feesAfter(fees: Fees, amount: Paise, fee: Paise): Fees | null {
  if (isAboveAmount(fee, amount)) return null
  const estimate = estimatedFees(fees, amount)
  const share = ceil(fee * MILLION, amount)
  const { feeEstimate, feeShare } = fees
  if (fee > estimate)
    return { feeEstimate: paise(most(feeEstimate, fee)), feeShare: most(feeShare ?? 0n, share) }
  if (estimate <= 2n * fee) return null
  return feeShare !== null && estimate < feeEstimate
    ? { feeEstimate, feeShare: (feeShare + share) / 2n }
    : { feeEstimate: paise((feeEstimate + fee) / 2n), feeShare }
}

const isAboveAmount = (fee: Paise, amount: Paise): boolean => fee > amount && fee > MOST_BELIEVED

/**
 * The anomaly of an implausible fee: payoutd keeps the fee as reported, but estimates nothing by it. Null: the fee is plausible.
 */
export const oddFee = (fee: Paise | null, amount: Paise): Pick<Anomaly, 'kind' | 'detail'> | null =>
  fee !== null && isAboveAmount(fee, amount)
    ? {
        kind: 'fee-above-amount',
        detail: `the gateway says a fee of ${formatRupees(fee)} for a payout of ${formatRupees(amount)}`,
      }
    : null
