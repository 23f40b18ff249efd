import type { Decision, Payout } from './payout.ts'
import { become, change } from './transition.ts'

/**
 * What a request to cancel does. Only a payout that the gateway cannot have is cancelled; one that waits
 * after an attempt goes to a person. For one that the gateway may have it comes too late: that is kept in
 * its history, and the outcome is found out as ever.
 */
export function cancel(payout: Payout, source: 'COMMAND' | 'OPERATOR', why: string): Decision {
  const waiting = payout.state === 'held' || payout.state === 'queued'
  const after = !waiting
    ? payout
    : payout.attempt === 0
      ? become(payout, 'cancelled', { reason: 'cancelled' })
      : become(payout, 'review', { reason: 'cancel-requested' })
  return change(payout, after, source, { note: why })
}
