import { awaitsRefusal, FAULTS } from '../commands/refused.ts'
import type { Scrubbed } from '../mask.ts'
import type { Decision, Payout } from './payout.ts'
import { isEnd } from './states.ts'
import { become, change, type PayoutFields, wasNeverSent } from './transition.ts'

/** Why a payout is in review: it was to be cancelled, but the gateway may have it. */
export const CANCEL_REQUESTED = 'cancel-requested'

/**
 * What a request to cancel does. It cancels a payout that waits and of which no byte ever left, and hands any other one that
 * waits to a person. If the gateway may have the payout, it keeps the request, so that payoutd does not send the payout again
 * (see `queueAgain`), and payoutd finds out the outcome as usual. It does not change a cancelled payout. `fenced`: the ledger was
 * restored and may have lost attempts, so payoutd does not send a waiting payout until the recovery has asked the gateway.
 */
export function cancel(
  payout: Payout,
  source: 'COMMAND' | 'OPERATOR',
  why: Scrubbed,
  { fenced = false }: { fenced?: boolean } = {},
): Decision {
  if (payout.state === 'cancelled') return { nothing: true }
  return change(payout, cancelled(payout, why, fenced), source, { note: why })
}

function cancelled(payout: Payout, why: Scrubbed, fenced: boolean): Payout {
  if (isEnd(payout.state)) return payout
  const asked = { ...payout, cancelRequest: payout.cancelRequest ?? why }
  if (payout.state !== 'held' && payout.state !== 'queued') return asked
  return fenced ? { ...asked, ready: false } : stop(asked)
}

/** Stops a payout that is to be cancelled or refused and is not under way. */
export function stop(payout: Payout, fields: PayoutFields = {}): Payout {
  if (awaitsRefusal(payout))
    return become(payout, payout.attempt === 0 ? 'rejected' : 'review', { reason: FAULTS })
  return wasNeverSent({ ...payout, ...fields })
    ? become(payout, 'cancelled', { ...fields, reason: 'cancelled' })
    : become(payout, 'review', { ...fields, ready: false, reason: CANCEL_REQUESTED })
}

/** Every way back to `queued` that no person chose: a payout that is to be cancelled is not sent again. */
export const queueAgain = (payout: Payout, fields: PayoutFields): Payout =>
  payout.cancelRequest === null ? become(payout, 'queued', fields) : stop(payout, fields)
