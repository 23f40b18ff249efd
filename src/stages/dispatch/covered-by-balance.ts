import { type Paise, paise } from '../../domain/money.ts'
import { estimatedFees, type Fees } from '../../domain/payout/fee.ts'
import type { MerchantFunds } from './merchant-gate.ts'

/** What is known of a merchant's balance, and of its fees. */
export type KnownFunds = Fees &
  Pick<MerchantFunds, 'available' | 'snapshotInDoubt' | 'snapshotClaimed' | 'claimedTotal'>

/**
 * What the balance still covers: the available amount when payoutd asked, less everything that the gateway may not have
 * subtracted by then, less everything claimed since.
 */
export const spendable = (funds: KnownFunds): Paise => {
  const left = leftOf(funds)
  return paise(left > 0n ? left : 0n)
}

/** The same, below zero where more is kept than there is. */
export function leftOf({ available, snapshotInDoubt, snapshotClaimed, claimedTotal }: KnownFunds): bigint {
  return (available ?? 0n) - snapshotInDoubt - (claimedTotal - snapshotClaimed)
}

/** A test of a smaller estimate would save the merchant too little to be worth an apply that may be refused. */
const TESTED_ABOVE = 10_000n

/**
 * How many of `amounts`, in this order, the balance covers, and what they cost with estimated fees. While nothing is in flight, a
 * fee estimate above ₹100 and a tenth of the first payout is ignored for it: only an answer can correct the estimate.
 */
export function covered(
  amounts: readonly Paise[],
  funds: KnownFunds,
  inFlight: number,
): { count: number; cost: Paise } {
  const limit = spendable(funds)
  let cost = 0n
  let count = 0
  for (const amount of amounts) {
    const fee = estimatedFees(funds, amount)
    const next = cost + amount + fee
    const isTest = inFlight === 0 && count === 0 && fee > TESTED_ABOVE && fee * 10n > amount
    if ((isTest ? amount : next) > limit) break
    cost = next
    count++
  }
  return { count, cost: paise(cost) }
}
