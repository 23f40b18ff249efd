import { awaitsRefusal, FAULTS } from '../commands/refused.ts'
import type { Scrubbed } from '../mask.ts'
import type { Decision, Payout } from './payout.ts'
import { isEnd } from './states.ts'
import { become, change, type PayoutFields, wasNeverSent } from './transition.ts'

/** Why a payout is in review that was to be cancelled, and that the gateway may have. */
export const CANCEL_REQUESTED = 'cancel-requested'

/**
 * What a request to cancel does. A payout of which no byte ever left is cancelled; another one that waits goes to a
 * person. Of one that the gateway may have the request is kept, so that it is not sent once more (see `queueAgain`), and
 * its outcome is found out as ever. Of one that is cancelled already nothing changes. `fenced`: the ledger was restored
 * and may have lost attempts, so what waits is kept from being sent until the recovery has asked the gateway.
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

/** The same payout, which is to be cancelled or refused and is not under way. */
export function stop(payout: Payout, fields: PayoutFields = {}): Payout {
  if (awaitsRefusal(payout))
    return become(payout, payout.attempt === 0 ? 'rejected' : 'review', { reason: FAULTS })
  return wasNeverSent({ ...payout, ...fields })
    ? become(payout, 'cancelled', { ...fields, reason: 'cancelled' })
    : become(payout, 'review', { ...fields, ready: false, reason: CANCEL_REQUESTED })
}

/** Every way back to `queued` that no person took: what was to be cancelled meanwhile is not sent once more. */
export const queueAgain = (payout: Payout, fields: PayoutFields): Payout =>
  payout.cancelRequest === null ? become(payout, 'queued', fields) : stop(payout, fields)
