import type { Instant } from '../instant.ts'
import type { QueryPolicy } from '../payout/next-query.ts'
import type { PayinRecoverAnswer } from './gateway-answers.ts'
import type { Payin, PayinDecision } from './payin.ts'
import { askAnew, change } from './transition.ts'

/**
 * Goes into the history before payoutd sends a recovery. From then on payoutd asks about the payin again, whatever the answer.
 */
export const intendRecovery = (
  payin: Payin,
  utr: string,
  queryPolicy: QueryPolicy,
  now: Instant,
): PayinDecision =>
  change(payin, askedAnew(payin, queryPolicy, now), 'RECOVERY', {
    note: `the gateway is asked to find the payment with UTR ${utr}`,
  })

/**
 * What the answer to a UTR recovery does. If the gateway may be working on it, payoutd asks about the payin again from the
 * first wait on, even if the payin had failed or expired. The answer proves no payment.
 */
export function recordRecovery(
  payin: Payin,
  answer: PayinRecoverAnswer,
  queryPolicy: QueryPolicy,
  now: Instant,
): PayinDecision {
  const inHand = answer.kind === 'submitted' || answer.kind === 'unknown'
  return change(payin, inHand ? askedAnew(payin, queryPolicy, now) : payin, 'RECOVERY', answer.exchange)
}

const askedAnew = (payin: Payin, queryPolicy: QueryPolicy, now: Instant): Payin =>
  payin.state === 'paid' ? payin : askAnew(payin, queryPolicy, now)
