import { formatRupees, type Paise, paise } from '../money.ts'

/** What recent answers tell of a merchant's fees: a payout's is taken to be the lower of the two. */
export type Fees = {
  /** Paise per payout. */
  feeEstimate: Paise
  /** Millionths of the amount; null: no answer told it yet. */
  feeShare: bigint | null
}

const MILLION = 1_000_000n
/** A flat fee may be above the amount of a payout that only tries a bank account. */
const MOST_BELIEVED = 10_000n

const ceil = (dividend: bigint, divisor: bigint): bigint => (dividend + divisor - 1n) / divisor
const least = (a: bigint, b: bigint): bigint => (a < b ? a : b)
const most = (a: bigint, b: bigint): bigint => (a > b ? a : b)

/** Of `count` payouts of `amount` paise together, in paise, at most; of one, what SQL computes as well (estimated-fee.ts). */
export function estimatedFees({ feeEstimate, feeShare }: Fees, amount: bigint, count = 1): Paise {
  const flat = BigInt(count) * feeEstimate
  return paise(feeShare === null ? flat : least(flat, ceil(amount * feeShare, MILLION)))
}

/**
 * The estimates after an answer that told a fee; null: they stay. A fee above the estimate raises both to it, one below half of
 * it lowers the one that it came from, half the way. So they follow a flat fee, a percentage and their change, and a
 * payout whose like has not been seen is taken to cost the less of the two: the gateway itself says what it does not cover.
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

/** The anomaly of a fee that nobody charges: it is kept as it was told, and nothing is estimated by it. Null: the fee may be. */
export const oddFee = (fee: Paise | null, amount: Paise): { kind: string; detail: string } | null =>
  fee !== null && isAboveAmount(fee, amount)
    ? {
        kind: 'fee-above-amount',
        detail: `the gateway says a fee of ${formatRupees(fee)} for a payout of ${formatRupees(amount)}`,
      }
    : null
