import { type Paise, paise } from '../../src/payout/money.ts'
import type { Timetable } from '../../src/payout/transition.ts'

/** What a dialect says, as far as the simulation needs it. All in milliseconds. */
export type Rules = {
  table: Timetable
  leaseMs: number
  /** The longest that one call takes; less than the lease. */
  callMs: number
  /** What the gateway does with a second apply under one order number. */
  duplicateApply: 'refused' | 'paid-again'
  /** An apply is at the gateway so soon after its bytes left, or never. */
  arrivesWithinMs: number
  /** An order can be found so soon after it arrived; with the above less than the grace period. */
  foundWithinMs: number
}

const queryAfterMs = [3_000, 5_000, 10_000, 20_000, 30_000]

/** As in `dialects/sandbox.json`. */
const refused: Rules = {
  table: { queryAfterMs, graceMs: 5_000, confirmations: 2, resendWhenAbsent: true },
  leaseMs: 15_000,
  callMs: 8_000,
  duplicateApply: 'refused',
  arrivesWithinMs: 2_000,
  foundWithinMs: 2_900,
}

/** A gateway that pays again, as a dialect must describe it: duplicates unknown, the grace longer than the lease. */
const paidAgain: Rules = {
  ...refused,
  table: { queryAfterMs, graceMs: 40_000, confirmations: 2, resendWhenAbsent: false },
  duplicateApply: 'paid-again',
  arrivesWithinMs: 8_000,
  foundWithinMs: 31_900,
}

export const RULES = { refused, 'paid-again': paidAgain } as const

/** What the gateway takes for each payout, and payoutd expects. */
export const FEE: Paise = paise(500)
export const LIMITS = { maxInFlight: 16, ratePerSecond: 4 }
