import type { Instant } from '../instant.ts'
import type { QueryPolicy } from '../payout/next-query.ts'
import type { QueryRecord } from '../payout/record-query-answer.ts'
import type { PayinQueryAnswer } from './gateway-answers.ts'
import type { Payin, PayinDecision } from './payin.ts'
import { askAgain, askedInVain, become, change, toReview, waits } from './transition.ts'

/**
 * What a query that found no order does: ask again later, or leave the payin to a person when its time is over. A "not
 * found" counts if payoutd asked after the grace period, and with a presence check: the same settings find a payin that is
 * known to exist. Enough of them in a row confirm that the gateway never got the order. If the gateway has shown the order
 * before, they can only mean that something is wrong.
 */
export function recordNothingFound(
  payin: Payin,
  answer: Exclude<PayinQueryAnswer, { kind: 'known' }>,
  { askedAt, presence }: QueryRecord,
  queryPolicy: QueryPolicy,
  now: Instant,
): PayinDecision {
  if (payin.state === 'creating' || payin.state === 'paid') return { nothing: true }
  const absent = waits(payin) && answer.kind === 'not-found'
  // If the gateway had the order, doubts begin with the first "not found".
  const unknownSince = absent ? (payin.unknownSince ?? askedAt) : payin.unknownSince
  const counts = absent && presence === true && askedAt >= (unknownSince ?? askedAt) + queryPolicy.graceMs
  const counted = {
    ...payin,
    unknownSince,
    notFoundCount: counts ? payin.notFoundCount + 1 : payin.notFoundCount,
  }
  return change(payin, next(), 'QUERY', answer.exchange)

  function next(): Payin {
    if (counts && counted.notFoundCount >= queryPolicy.confirmations) {
      return payin.payOrderId === null && !payin.orderShown
        ? become(payin, 'failed', now, { reason: 'proved-absent' })
        : askAgain(toReview(payin, 'not-found', now), queryPolicy, now)
    }
    return askedInVain(counted, queryPolicy, now)
  }
}
