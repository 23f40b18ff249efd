import type { Scrubbed } from './mask.ts'
import type { Decision, Payout } from './payout.ts'
import { become, change } from './transition.ts'

/** Why a payout is held that was to be cancelled while its merchant was fenced. */
export const CANCEL_REQUESTED = 'cancel-requested'

/**
 * What a request to cancel does. Only a payout that the gateway cannot have is cancelled; one that waits
 * after an attempt goes to a person. For one that the gateway may have it comes too late: that is kept in
 * its history, and the outcome is found out as ever. Of one that is cancelled already nothing changes.
 * `fenced`: the ledger was restored and may have lost attempts, so the payout is held until the recovery has asked the
 * gateway.
 */
export function cancel(
  payout: Payout,
  source: 'COMMAND' | 'OPERATOR',
  why: Scrubbed,
  { fenced = false }: { fenced?: boolean } = {},
): Decision {
  if (payout.state === 'cancelled') return { nothing: true }
  return change(payout, cancelled(payout, fenced), source, { note: why })
}

function cancelled(payout: Payout, fenced: boolean): Payout {
  if (payout.state !== 'held' && payout.state !== 'queued') return payout
  if (payout.attempt > 0) return become(payout, 'review', { reason: CANCEL_REQUESTED })
  if (!fenced) return become(payout, 'cancelled', { reason: 'cancelled' })
  return become(payout, 'held', { reason: CANCEL_REQUESTED, dueAt: payout.deadline })
}
