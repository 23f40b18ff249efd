import type { EvidenceSource, Exchange } from '../evidence.ts'
import { withOrderBesides } from './order-shown.ts'
import type { Decision, Payout } from './payout.ts'
import { DOUBT } from './several-orders.ts'
import { isEnd } from './states.ts'
import { anomaly, become } from './transition.ts'

/** The kind of an anomaly that shows that the ledger lost something; it fences the merchant. */
export const NEVER_SENT = 'never-sent'

/**
 * What evidence does that shows an order or an attempt that the ledger never sent: the ledger was set back. payoutd keeps
 * the evidence. A payout that waits goes to a person or to `payoutd recover`, and payoutd does not send it meanwhile. Any
 * payout that has not ended is doubted, because that attempt may be alive. `shows`: what the evidence shows for sure.
 */
export function neverSent(
  payout: Payout,
  source: EvidenceSource,
  detail: string,
  exchange: Exchange | null,
  shows: 'attempt' | 'order' | 'order-besides',
): Decision {
  const decision = anomaly(payout, source, NEVER_SENT, detail, exchange)
  if (isEnd(payout.state)) return decision
  const doubted =
    shows === 'order-besides'
      ? withOrderBesides(payout)
      : {
          ...{ ...payout, ...DOUBT },
          orderShown: payout.orderShown || shows === 'order',
        }
  if (payout.state !== 'held' && payout.state !== 'queued')
    return { ...decision, change: { before: payout, after: doubted, source, exchange: null } }
  const after = become(doubted, 'review', { reason: NEVER_SENT })
  return { ...decision, change: { before: payout, after, source, exchange } }
}
