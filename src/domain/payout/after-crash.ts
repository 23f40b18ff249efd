import type { Instant } from '../instant.ts'
import { nextQueryAt, type QueryPolicy } from './next-query.ts'
import type { Payout } from './payout.ts'
import { become } from './transition.ts'

/**
 * What becomes of a payout whose lease ended before anybody stored what its attempt came to, as after a crash: nobody knows
 * whether the request left, so it is unknown, and the gateway is asked.
 */
export const unknownAfterCrash = (payout: Payout, queryPolicy: QueryPolicy, now: Instant): Payout =>
  become(payout, 'unknown', {
    reason: 'lease-ended',
    unknownSince: now,
    dueAt: nextQueryAt(0, queryPolicy, now),
  })
