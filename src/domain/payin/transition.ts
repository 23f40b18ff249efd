import { cutText } from '../../text/text.ts'
import type { AnomalyKind } from '../anomaly-kinds.ts'
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
 * The payin at an end; every end is set here. payoutd looks at an unpaid payin again, whatever ended it: even one that was
 * never sent may have an order from before the ledger was set back.
 */
export function atEnd(payin: Payin, state: PayinEnd, now: Instant): Payin {
  const { askedAnew, queries, dueAt } = payin
  const ended = { ...payin, ...FRESH, state }
  if (state === 'paid') return { ...ended, askedAnew: false }
  return askedAnew ? { ...ended, queries, dueAt } : { ...ended, dueAt: lateLookAt(payin, now) }
}

/** How long payoutd waits between queries about a payin in review: nobody waits for the answer, and money may have come. */
const REVIEW_EVERY_MS = 3_600_000

/** A payer may be late, a UTR recovery may still find a transfer, and payoutd may miss the callback about it. */
const LATE_FOR_MS = 7 * 24 * 3_600_000
const LATE_FIRST_MS = 3_600_000

/** When payoutd looks again at a payin that ended unpaid: after an hour, then ever later; null: never again. */
export function lateLookAt({ expiresAt }: Payin, now: Instant): Instant | null {
  const last = expiresAt + LATE_FOR_MS
  return now < last ? Math.min(now + Math.max(LATE_FIRST_MS, now - expiresAt), last) : null
}

/** It ended unpaid, and payoutd is not in a new round of queries about it. */
export const isLateLook = ({ state, askedAnew }: Payin): boolean => isEnd(state) && !askedAnew

/** The payin in review, where payoutd still asks about it now and then. */
export const toReview = (payin: Payin, reason: string, now: Instant): Payin =>
  become(payin, 'review', now, { reason, queries: payin.queries, dueAt: now + REVIEW_EVERY_MS })

/** The same payin; payoutd asks about it from the first wait on, once for each wait of the query policy. */
export const askAnew = (payin: Payin, queryPolicy: QueryPolicy, now: Instant): Payin => ({
  ...payin,
  ...{ askedAnew: true, queries: 0, dueAt: nextQueryAt(0, queryPolicy, now) },
})

/**
 * The same payin after a query that ended nothing. payoutd asks about a waiting payin until it expires, and in a new round once
 * for each wait of the query policy. After that it asks every hour about a payin in review, and ever more rarely about any other.
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
 * The same payin after a report that payoutd cannot act on: payoutd asks at once, and if it no longer asks about this payin,
 * just this once.
 */
export function askSoon(payin: Payin, queryPolicy: QueryPolicy, now: Instant): Payin {
  if (payin.state === 'creating' || payin.state === 'paid') return payin
  const soonest = soonestQueryAt(payin.askedAt, queryPolicy, now)
  return payin.dueAt === null || soonest < payin.dueAt ? { ...payin, dueAt: soonest } : payin
}

/** Whether payoutd stops asking about a payin that nobody has paid. */
export const isOver = (payin: Payin, now: Instant): boolean => now >= payin.expiresAt

/** Whether payoutd waits for a report of the gateway about it. */
export const waits = ({ state }: Payin): boolean => state === 'open' || state === 'unknown'

/** The payin after a query that ended nothing: payoutd asks again, and hands it to a person once its time is over. */
export const askedInVain = (payin: Payin, queryPolicy: QueryPolicy, now: Instant): Payin =>
  askAgain(waits(payin) && isOver(payin, now) ? toReview(payin, 'expired', now) : payin, queryPolicy, now)

/** A decision that stores the payin together with its evidence. */
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
  kind: AnomalyKind,
  detail: string,
  exchange: Exchange | null,
): { anomaly: Anomaly } => ({
  anomaly: { merchantId, payoutId: null, orderNo: cutText(payinId, 64), kind, detail, source, exchange },
})
