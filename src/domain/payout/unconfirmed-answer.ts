import type { Instant } from '../instant.ts'
import { isConclusive, nextQueryAt, type QueryPolicy } from './next-query.ts'
import type { Payout } from './payout.ts'
import { become, type PayoutFields } from './transition.ts'

/** Why a payout is unknown of which the gateway said that it refuses this attempt, or will not take it now. */
const REFUSED = 'refused'
export const LATER = 'later'

type Said = { reason: typeof REFUSED; refusal: string } | { reason: typeof LATER; laterCodes: string }

/**
 * The same payout after a refusal or a "later". Neither names an order: it may answer another request, or the second run of one
 * that a proxy sent twice. So payoutd keeps what was said, and asks the gateway.
 */
export function unconfirmed(payout: Payout, said: Said, queryPolicy: QueryPolicy, now: Instant): Payout {
  const fields: PayoutFields = { ...said, unknownSince: now, dueAt: nextQueryAt(0, queryPolicy, now) }
  return payout.state === 'unknown'
    ? { ...payout, ...fields, notFoundCount: 0 }
    : become(payout, 'unknown', fields)
}

/**
 * Whether a "not found" would only confirm what the gateway said of the latest attempt. A refusal says nothing about an earlier one,
 * which may be alive.
 */
export const awaitsConfirmation = ({ reason, doubted, orderShown, agentpayOrderId }: Payout): boolean =>
  !orderShown && agentpayOrderId === null && (reason === LATER || (reason === REFUSED && !doubted))

/** Then one is enough, to a query after the first wait. */
export const confirming = (queryPolicy: QueryPolicy): QueryPolicy =>
  isConclusive(queryPolicy)
    ? { ...queryPolicy, graceMs: queryPolicy.queryAfterMs[0] as number, confirmations: 1 }
    : queryPolicy
