import type { Exchange } from '../evidence.ts'
import type { Instant } from '../instant.ts'
import { queueAgain } from './cancel.ts'
import {
  answered,
  askedInVain,
  isAskedAbout,
  isConclusive,
  nextQueryAt,
  nothingAlive,
  type QueryPolicy,
} from './next-query.ts'
import type { Decision, Payout } from './payout.ts'
import { afterUnpaid, lastCode, withdrawnCode } from './send-again.ts'
import { DOUBT } from './several-orders.ts'
import { become, change } from './transition.ts'
import { awaitsConfirmation, countsUnchecked, LATER } from './unconfirmed-answer.ts'

/** Why a payout is in review that the gateway no longer finds, although it showed an order of it. */
export const NOT_FOUND = 'not-found'

/** When payoutd asked, and whether the presence check of that time found the known orders. Null: the account never confirmed any. */
export type QueryRecord = { askedAt: Instant; presence: boolean | null }

/**
 * What a "not found" does. It counts only if payoutd asked after the grace period, and only with a presence check. Enough of
 * them in a row confirm absence. Where the gateway had said that the attempt is not paid, they confirm that, also while the account
 * has no order to check with, and payoutd asks faster. If the gateway showed that it has or had the order, they can only mean that
 * something is wrong, so a person decides.
 */
export function recordAbsence(
  payout: Payout,
  exchange: Exchange,
  { askedAt, presence }: QueryRecord,
  queryPolicy: QueryPolicy,
  now: Instant,
): Decision {
  const counts = presence === true || (presence === null && countsUnchecked(payout))
  if (!isAskedAbout(payout)) {
    const after = answered(payout, { askedAt, counts: counts && isConclusive(queryPolicy) })
    return after.ready === payout.ready ? { nothing: true } : change(payout, after, 'QUERY', exchange)
  }
  const isConfirming = awaitsConfirmation(payout, queryPolicy)
  const asked = nothingAlive(payout, { askedAt, counts }, queryPolicy, now)
  const after = asked && isConfirming && asked.notFoundCount > 0 ? soonAgain(asked, queryPolicy, now) : asked
  return change(payout, after ?? confirmedAbsent(payout, isConfirming, queryPolicy, now), 'QUERY', exchange)
}

const soonAgain = (payout: Payout, queryPolicy: QueryPolicy, now: Instant): Payout => ({
  ...payout,
  dueAt: Math.min(payout.dueAt ?? payout.deadline, nextQueryAt(0, queryPolicy, now)),
})

function confirmedAbsent(
  payout: Payout,
  isConfirming: boolean,
  queryPolicy: QueryPolicy,
  now: Instant,
): Payout {
  const { state, reason, refusal, agentpayOrderId, orderShown } = payout
  const toPerson = (why: string) => become(payout, 'review', { reason: why, refusal })
  if (state !== 'unknown' || agentpayOrderId !== null || orderShown) return toPerson(NOT_FOUND)
  if (!queryPolicy.duplicatesRefused && !isConfirming) return toPerson('proved-absent')
  if (reason === LATER)
    return afterUnpaid(payout, { reason: lastCode(payout) ?? LATER, turnedAway: true }, now)
  if (refusal === null) return queueAgain(payout, { reason: 'proved-absent', ready: true, ...DOUBT })
  // The settings in force may no longer call it a refusal.
  if (withdrawnCode(payout, queryPolicy) !== null) return toPerson('refusal-withdrawn')
  return become(payout, 'failed', { reason: refusal, unreported: true })
}

/**
 * What a query without an answer does: ask again later. Payouts that were due together are then due apart, over a time as long as the
 * wait, so that a gateway that answers only so many queries a second is not asked about all of them at once again.
 */
export function recordNoAnswer(
  payout: Payout,
  exchange: Exchange,
  queryPolicy: QueryPolicy,
  now: Instant,
): Decision {
  if (!isAskedAbout(payout)) return { nothing: true }
  const after = askedInVain(payout, queryPolicy, now)
  const waitMs = nextQueryAt(after.queries, queryPolicy, now) - now
  const dueAt = Math.min(now + Math.round(waitMs * (0.5 + lot(payout))), payout.deadline)
  return change(payout, { ...after, dueAt }, 'QUERY', exchange)
}

/** From 0 to 1, and another for each order and query. */
function lot({ orderNo, queries }: Payout): number {
  let mixed = queries
  for (const character of orderNo ?? '') mixed = (mixed * 31 + character.charCodeAt(0)) % 9_973
  return mixed / 9_973
}
