import { cutText } from '../../text/text.ts'
import type { EvidenceSource, Exchange } from '../evidence.ts'
import type { Instant } from '../instant.ts'
import { nextQueryAt, type QueryPolicy, soonestQueryAt } from '../payout/next-query.ts'
import type { Anomaly } from '../payout/payout.ts'
import type { Payin, PayinDecision } from './payin.ts'
import { isEnd, mayMove, type PayinEnd, type PayinState } from './states.ts'

type PayinFields = Partial<Omit<Payin, 'merchantId' | 'payinId' | 'version' | 'state'>>

/** The next state with its fields. Throws on a move that the state table forbids: a bug. */
export function become(payin: Payin, state: PayinState, now: Instant, fields: PayinFields): Payin {
  if (!mayMove(payin.state, state)) {
    throw new Error(`payin ${payin.merchantId}:${payin.payinId} cannot go from ${payin.state} to ${state}`)
  }
  const moved = isEnd(state) ? atEnd(payin, state, now) : { ...payin, ...FRESH, state }
  return { ...moved, reason: null, ...fields, version: payin.version + 1 }
}

const FRESH = { unknownSince: null, queries: 0, notFoundCount: 0, dueAt: null }

/**
 * The payin at an end; every way to one leads through here. Whoever called it unpaid, and why, it is looked at again: even one
 * that was never sent may have an order, of before the ledger was set back.
 */
export function atEnd(payin: Payin, state: PayinEnd, now: Instant): Payin {
  const { askedAnew, queries, dueAt } = payin
  const ended = { ...payin, ...FRESH, state }
  if (state === 'paid') return { ...ended, askedAnew: false }
  return askedAnew ? { ...ended, queries, dueAt } : { ...ended, dueAt: lateLookAt(payin, now) }
}

/** Until the next question about a payin in review: nobody waits for the answer, and money may have come. */
const REVIEW_EVERY_MS = 3_600_000

/** A payer may be late, a transfer may be found again by its UTR, and the callback about it may miss payoutd. */
const LATE_FOR_MS = 7 * 24 * 3_600_000
const LATE_FIRST_MS = 3_600_000

/** When a payin that ended unpaid is looked at again: after an hour, then ever later; null: no more. */
export function lateLookAt({ expiresAt }: Payin, now: Instant): Instant | null {
  const last = expiresAt + LATE_FOR_MS
  return now < last ? Math.min(now + Math.max(LATE_FIRST_MS, now - expiresAt), last) : null
}

/** It ended unpaid, and is not asked about anew. */
export const isLateLook = ({ state, askedAnew }: Payin): boolean => isEnd(state) && !askedAnew

/** The payin in review, where it is still asked about now and then. */
export const toReview = (payin: Payin, reason: string, now: Instant): Payin =>
  become(payin, 'review', now, { reason, queries: payin.queries, dueAt: now + REVIEW_EVERY_MS })

/** The same payin, to be asked about from the first wait on, as often as the query policy has waits. */
export const askAnew = (payin: Payin, queryPolicy: QueryPolicy, now: Instant): Payin => ({
  ...payin,
  ...{ askedAnew: true, queries: 0, dueAt: nextQueryAt(0, queryPolicy, now) },
})

/**
 * The same payin after a query that settled nothing. One that waits is asked about again until it expires, and one that is asked
 * about anew as often as the query policy has waits; after that one in review every hour, and any other ever more rarely.
 */
export function askAgain(payin: Payin, queryPolicy: QueryPolicy, now: Instant): Payin {
  const queries = payin.queries + 1
  const next = nextQueryAt(queries, queryPolicy, now)
  const askedAnew = payin.askedAnew && queries < queryPolicy.queryAfterMs.length
  const asked = { ...payin, queries, askedAnew }
  if (waits(payin)) return { ...asked, dueAt: now < payin.expiresAt ? Math.min(next, payin.expiresAt) : next }
  if (askedAnew) return { ...asked, dueAt: next }
  return { ...asked, dueAt: payin.state === 'review' ? now + REVIEW_EVERY_MS : lateLookAt(payin, now) }
}

/**
 * The same payin after a report that settles nothing: it is asked about at once, and one that nobody asks about any more
 * is so once.
 */
export function askSoon(payin: Payin, queryPolicy: QueryPolicy, now: Instant): Payin {
  if (payin.state === 'creating' || payin.state === 'paid') return payin
  const soonest = soonestQueryAt(payin.askedAt, queryPolicy, now)
  return payin.dueAt === null || soonest < payin.dueAt ? { ...payin, dueAt: soonest } : payin
}

/** Whether it is time to stop asking about a payin that nobody has paid. */
export const isOver = (payin: Payin, now: Instant): boolean => now >= payin.expiresAt

/** Whether the gateway's word about it is awaited. */
export const waits = ({ state }: Payin): boolean => state === 'open' || state === 'unknown'

/** The payin after a question whose answer settles nothing: asked again, and a person's once its time is over. */
export const askedInVain = (payin: Payin, queryPolicy: QueryPolicy, now: Instant): Payin =>
  askAgain(waits(payin) && isOver(payin, now) ? toReview(payin, 'expired', now) : payin, queryPolicy, now)

/** A decision that stores the payin, and what was heard with it. */
export const change = (
  before: Payin,
  after: Payin,
  source: EvidenceSource,
  exchange: Exchange | null,
): PayinDecision => ({ change: { before, after, source, exchange } })

/** Evidence that must not change the payin, kept under its order number. */
export const anomaly = (
  { merchantId, payinId }: Pick<Payin, 'merchantId' | 'payinId'>,
  source: EvidenceSource,
  kind: string,
  detail: string,
  exchange: Exchange | null,
): { anomaly: Anomaly } => ({
  anomaly: { merchantId, payoutId: null, orderNo: cutText(payinId, 64), kind, detail, source, exchange },
})
