import type { Instant } from '../instant.ts'
import { nextQueryAt, type QueryPolicy } from './next-query.ts'
import type { Payout } from './payout.ts'
import { become } from './transition.ts'

/**
 * A payout whose lease ended before the result of its attempt was stored, as after a crash. Nobody knows whether the request
 * left, so the payout is unknown and payoutd asks the gateway.
 */
export const unknownAfterCrash = (payout: Payout, queryPolicy: QueryPolicy, now: Instant): Payout =>
  become(payout, 'unknown', {
    reason: 'lease-ended',
    unknownSince: now,
    dueAt: nextQueryAt(0, queryPolicy, now),
  })
