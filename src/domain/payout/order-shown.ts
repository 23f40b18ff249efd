import type { Payout } from './payout.ts'
import { DOUBT } from './several-orders.ts'
import { isEnd } from './states.ts'
import { become, wasNeverSent } from './transition.ts'

/** Why a payout is in review that was about to be sent (again) when the gateway showed an order of it. */
export const ORDER_SHOWN = 'order-shown'

/**
 * The same payout after the gateway showed that it has or had an order of it, by whatever signed statement that does not settle
 * it: a report, or the answer to an apply, however late that comes.
 */
export function shown(payout: Payout): Payout {
  if (isEnd(payout.state)) return payout
  // Then an attempt that the ledger does not know of made it, at any account.
  const doubted = wasNeverSent(payout) && DOUBT
  const there = { ...payout, orderShown: true, notFoundCount: 0, ...doubted }
  if (payout.state === 'queued' || payout.state === 'held')
    return become(there, 'review', { reason: ORDER_SHOWN })
  return payout.orderShown && payout.notFoundCount === 0 && !doubted ? payout : there
}

/**
 * The same payout after the gateway showed an order of it that the latest attempt does not have: of an earlier attempt, or at another
 * account.
 */
export const shownBesides = (payout: Payout): Payout =>
  isEnd(payout.state) ? payout : shown(withOrderBesides(payout))

export const withOrderBesides = (payout: Payout): Payout => ({
  ...payout,
  ...{ orderShown: true, notFoundCount: 0, orderBesides: true, ...DOUBT },
})
