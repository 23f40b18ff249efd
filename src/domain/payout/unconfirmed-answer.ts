import type { ApplyAnswer } from '../gateway-answers.ts'
import type { Instant } from '../instant.ts'
import { nextQueryAt, type QueryPolicy } from './next-query.ts'
import type { Payout } from './payout.ts'
import { withCode, withdrawnCode } from './send-again.ts'
import { become } from './transition.ts'

/** Why a payout is unknown of which the gateway said that it refuses this attempt, or will not take it now. */
const REFUSED = 'refused'
export const LATER = 'later'

/**
 * The same payout after a refusal or a "later". Neither names an order: it may answer another request, or the second run of one
 * that a proxy sent twice. So payoutd keeps what was said, and asks the gateway.
 */
export function unconfirmed(
  payout: Payout,
  answer: Extract<ApplyAnswer, { kind: 'refused' | 'retry-later' }>,
  queryPolicy: QueryPolicy,
  now: Instant,
): Payout {
  const fields = {
    ...(answer.kind === 'refused'
      ? { reason: REFUSED, refusal: answer.message || answer.code }
      : { reason: LATER }),
    unpaidCodes: withCode(payout.unpaidCodes, answer.code),
    unknownSince: now,
    dueAt: Math.min(nextQueryAt(0, queryPolicy, now), payout.deadline),
  }
  return payout.state === 'unknown'
    ? { ...payout, ...fields, notFoundCount: 0 }
    : become(payout, 'unknown', fields)
}

/** Whether nothing is known of an order that may be alive. */
const hasNoOrder = ({ doubted, orderShown, agentpayOrderId }: Payout): boolean =>
  !(doubted || orderShown || agentpayOrderId !== null)

/** Whether "not found" counts while the account has confirmed no order that a presence check could find. */
export const countsUnchecked = (payout: Payout): boolean =>
  hasNoOrder(payout) && (payout.state === 'queued' || isUnpaid(payout))

/** Whether the gateway said of the latest attempt that it refuses it, or will not take it now. */
const isUnpaid = ({ reason }: Payout): boolean => reason === LATER || reason === REFUSED

/**
 * Whether "not found" confirms what the gateway said of the latest attempt: that promise must still hold, and no other attempt may
 * be alive.
 */
export const awaitsConfirmation = (payout: Payout, queryPolicy: QueryPolicy): boolean =>
  isUnpaid(payout) && hasNoOrder(payout) && withdrawnCode(payout, queryPolicy) === null
