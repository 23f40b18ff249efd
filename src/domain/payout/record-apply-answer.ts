import { unreadableFields } from '../anomaly-details.ts'
import type { ApplyAnswer } from '../gateway-answers.ts'
import type { Instant } from '../instant.ts'
import { END_PUBLISHED } from '../recovery/published-otherwise.ts'
import { ANOTHER_ORDER } from './apply-evidence.ts'
import { oddFee } from './fee.ts'
import { nextQueryAt, type QueryPolicy } from './next-query.ts'
import { shown, shownBesides } from './order-shown.ts'
import type { Decision, Payout } from './payout.ts'
import { afterUnpaid } from './send-again.ts'
import { mayBePaidByAnother } from './several-orders.ts'
import { endedUnpaid, isEnd } from './states.ts'
import { anomaly, become, change, type PayoutFields } from './transition.ts'
import { unconfirmed } from './unconfirmed-answer.ts'

/**
 * What the answer to an apply call does to its payout. An answer counts only for the current attempt, and only while that is
 * open (submitting, or unknown since). Otherwise payoutd keeps it as evidence and moves nothing. `attempt`: null if nobody
 * can say which attempt it answers.
 */
export function recordApply(
  payout: Payout,
  attempt: number | null,
  answer: ApplyAnswer,
  queryPolicy: QueryPolicy,
  now: Instant,
): Decision {
  const decision = recorded(payout, attempt, answer, queryPolicy, now)
  if (answer.kind !== 'accepted' || !('change' in decision) || 'anomaly' in decision) return decision
  const odd = answer.unreadable ? unreadableFields(answer.unreadable) : oddFee(answer.fee, payout.amount)
  return odd ? { ...anomaly(payout, 'APPLY', odd.kind, odd.detail, answer.exchange), ...decision } : decision
}

function recorded(
  payout: Payout,
  attempt: number | null,
  answer: ApplyAnswer,
  queryPolicy: QueryPolicy,
  now: Instant,
): Decision {
  const { exchange } = answer
  const knownId = payout.agentpayOrderId
  const besides = (detail: string): Decision => answeredBesides(payout, answer, detail)
  if (answer.kind === 'accepted' && knownId !== null && knownId !== answer.agentpayOrderId)
    return besides(`apply says ${answer.agentpayOrderId} (${answer.status}), but the payout has ${knownId}`)
  const open = payout.attempt === attempt && (payout.state === 'submitting' || payout.state === 'unknown')
  if (!open) {
    // The gateway has the order after all, and the payout waits to be sent again.
    if (answer.kind === 'accepted' && (payout.state === 'queued' || payout.state === 'held'))
      return change(
        payout,
        become(payout, 'processing', takenBy(answer, queryPolicy, now)),
        'APPLY',
        exchange,
      )
    if (answer.kind === 'accepted' && mayBeAnotherOrder(payout)) {
      const detail = `apply says ${answer.agentpayOrderId} (${answer.status}), but it is not known which order of this payout was ${isEnd(payout.state) ? payout.state : 'published'}`
      return besides(detail)
    }
    const isEarlier = attempt === null || attempt < payout.attempt
    // An order without a number may be the latest attempt's, unless the answer is to an earlier one.
    const isUnnamedOfEarlier = attempt !== null && !isEnd(payout.state) && showsUnnamed(answer)
    const isOfEarlier = isEarlier && (answer.kind === 'accepted' || isUnnamedOfEarlier)
    if (isOfEarlier && knownId === null) {
      const which =
        attempt === null ? 'a lost attempt' : `attempt ${attempt}; attempt ${payout.attempt} was made since`
      return besides(`apply ${inWords(answer)}, of ${which}`)
    }
    if (showsUnnamed(answer) && !isEnd(payout.state)) return change(payout, shown(payout), 'APPLY', exchange)
    const contradicts = contradiction(payout, attempt, answer)
    return contradicts === null
      ? change(payout, overtaken(payout, answer), 'APPLY', exchange)
      : anomaly(
          payout,
          'APPLY',
          'contradiction',
          `apply ${contradicts}, yet the payout is ${payout.state}`,
          exchange,
        )
  }
  switch (answer.kind) {
    case 'accepted':
      return change(
        payout,
        become(payout, 'processing', takenBy(answer, queryPolicy, now)),
        'APPLY',
        exchange,
      )
    case 'refused':
    case 'retry-later':
      return change(payout, unconfirmed(payout, answer, queryPolicy, now), 'APPLY', exchange)
    case 'not-sent': {
      // The order that was shown belongs to an earlier attempt, so payoutd asks the gateway about it.
      const isShown = knownId !== null || payout.orderShown
      const after = isShown
        ? notKnown(payout, answer.reason, queryPolicy, now)
        : afterUnpaid(payout, { reason: answer.reason }, now)
      return change(payout, after, 'APPLY', exchange)
    }
    case 'duplicate':
    case 'unknown': {
      const reason = answer.kind === 'duplicate' ? 'duplicate' : answer.reason
      const there = showsUnnamed(answer) ? { ...payout, orderShown: true, notFoundCount: 0 } : payout
      return change(payout, notKnown(there, reason, queryPolicy, now), 'APPLY', exchange)
    }
  }
}

/**
 * What an answer does that shows an order of a payout which has not ended, at another account than the one where an attempt of it may
 * be alive.
 */
export const answeredElsewhere = (payout: Payout, accountId: string | null, answer: ApplyAnswer): Decision =>
  answeredBesides(
    payout,
    answer,
    `apply ${inWords(answer)} by gateway account ${accountId ?? '(unknown)'}, but the payout may be at ${payout.accountId ?? 'any account'}`,
  )

/** It may be another order than the one that the latest attempt has. */
function answeredBesides(payout: Payout, { exchange }: ApplyAnswer, detail: string): Decision {
  const decision = anomaly(payout, 'APPLY', ANOTHER_ORDER, detail, exchange)
  return isEnd(payout.state)
    ? decision
    : { ...decision, ...change(payout, shownBesides(payout), 'APPLY', exchange) }
}

/** Whether the answer shows that the gateway has an order of the attempt. */
export const showsOrder = (answer: ApplyAnswer): boolean => answer.kind === 'accepted' || showsUnnamed(answer)

/** The same, and it does not say which it is. */
const showsUnnamed = (answer: ApplyAnswer): boolean =>
  answer.kind === 'duplicate' || (answer.kind === 'unknown' && answer.reason === 'no-order-id')

/** What a late answer says that cannot be true together with where the payout is; null: nothing. */
function contradiction(payout: Payout, attempt: number | null, answer: ApplyAnswer): string | null {
  const { state, unreported } = payout
  const isThere = state === 'paid' || state === 'processing'
  if (answer.kind === 'refused') return isThere ? `was refused (${answer.code})` : null
  if (answer.kind === 'retry-later' && attempt === payout.attempt && isThere)
    return `was turned away (${answer.code})`
  if (!unreported && (state === 'failed' || !endedUnpaid(state))) return null
  return showsOrder(answer) ? inWords(answer) : null
}

const inWords = (answer: ApplyAnswer): string =>
  answer.kind === 'accepted'
    ? `was accepted as ${answer.agentpayOrderId} (${answer.status})`
    : `says that the order is there (${answer.kind === 'duplicate' ? answer.code : 'without its number'})`

function takenBy(
  answer: Extract<ApplyAnswer, { kind: 'accepted' }>,
  queryPolicy: QueryPolicy,
  now: Instant,
): PayoutFields {
  const { agentpayOrderId, fee, status } = answer
  const ended = status === 'success' || status === 'failed'
  return { agentpayOrderId, fee, dueAt: ended ? now : nextQueryAt(0, queryPolicy, now) }
}

function notKnown(payout: Payout, reason: string, queryPolicy: QueryPolicy, now: Instant): Payout {
  if (payout.state === 'unknown') return payout
  return become(payout, 'unknown', { reason, unknownSince: now, dueAt: nextQueryAt(0, queryPolicy, now) })
}

/**
 * The gateway accepts an order after an end, or a published one, whose order is unknown: it may pay this order as well. An
 * attempt that was turned away is not paid, so a payment belongs to the other order.
 */
const mayBeAnotherOrder = (payout: Payout): boolean => {
  const { state, reason, agentpayOrderId, turnedAway } = payout
  if (agentpayOrderId !== null) return false
  if (!isEnd(state)) return reason === END_PUBLISHED
  return mayBePaidByAnother(payout) || (turnedAway && state !== 'paid')
}

/** A callback came first: the answer adds only the fields that the callback left out. */
function overtaken(payout: Payout, answer: ApplyAnswer): Payout {
  if (answer.kind !== 'accepted') return payout
  const fee = endedUnpaid(payout.state) ? null : (payout.fee ?? answer.fee)
  return { ...payout, agentpayOrderId: answer.agentpayOrderId, fee }
}
