import type { Instant } from '../instant.ts'
import type { Payout } from './payout.ts'

/** When to look again. From the merchant's dialect; all in milliseconds. */
export type QueryPolicy = {
  /** Asking about a payout that was accepted or is unknown: the first waits, at least one, then the last for ever. */
  queryAfterMs: readonly number[]
  /** How long after a result became unknown a "not found" begins to count. */
  graceMs: number
  /** How many counted "not found" prove absence. */
  confirmations: number
  /** A proved-absent order may be sent again under its number: the gateway refuses duplicates. */
  resendWhenAbsent: boolean
}

/**
 * Of a process whose settings are not in force: it goes on to ask, and concludes nothing from what is not found or failed in
 * doubt.
 */
export const inconclusive = (queryPolicy: QueryPolicy): QueryPolicy => ({
  ...queryPolicy,
  graceMs: Number.POSITIVE_INFINITY,
  confirmations: Number.POSITIVE_INFINITY,
  resendWhenAbsent: false,
})

export const nextQueryAt = (queries: number, queryPolicy: QueryPolicy, now: Instant): Instant =>
  now + (queryPolicy.queryAfterMs[Math.min(queries, queryPolicy.queryAfterMs.length - 1)] as number)

/** Whether the gateway is asked about it again and again. */
export const isAskedAbout = ({ state }: Payout): boolean => state === 'unknown' || state === 'processing'

/**
 * When to ask for a report that settles nothing: now, and no sooner after the last question than the query policy's first
 * wait, so that nobody makes payoutd ask without end.
 */
export const soonestQueryAt = (askedAt: Instant | null, queryPolicy: QueryPolicy, now: Instant): Instant =>
  askedAt === null ? now : Math.max(now, askedAt + (queryPolicy.queryAfterMs[0] as number))

/** The same payout after a report that settles nothing: the next question comes as soon as it may. */
export function askedSoon(payout: Payout, queryPolicy: QueryPolicy, now: Instant): Payout {
  const soonest = soonestQueryAt(payout.askedAt, queryPolicy, now)
  return payout.dueAt !== null && soonest < payout.dueAt ? { ...payout, dueAt: soonest } : payout
}

/** Of one that nobody was told of yet, a recovery makes it ready, and no answer. */
const mayWait = ({ state, version, cancelRequest }: Payout): boolean =>
  state === 'queued' && version > 0 && cancelRequest === null

/** The same payout with an open question about its order: until that is answered, it is not sent. */
export const awaitAnswer = (payout: Payout): Payout =>
  mayWait(payout) ? { ...payout, ready: false, dueAt: payout.deadline } : payout

/** The same payout after an answer by which it may be sent. A back-off ends before the deadline, a question does not. */
export const answered = (payout: Payout): Payout =>
  mayWait(payout) && payout.dueAt === payout.deadline ? { ...payout, ready: true } : payout

/** The same payout after a question whose answer settled nothing: the next one waits longer. */
export function askedInVain(payout: Payout, queryPolicy: QueryPolicy, now: Instant): Payout {
  const queries = payout.queries + 1
  return { ...payout, queries, dueAt: Math.min(nextQueryAt(queries, queryPolicy, now), payout.deadline) }
}

/**
 * The same payout after an answer that showed nothing of it alive. It counts (where `counts`) if it was asked for after the
 * grace, in which what is on its way may still arrive. Null: this was the last that it takes.
 */
export function nothingAlive(
  payout: Payout,
  { askedAt, counts }: { askedAt: Instant; counts: boolean },
  queryPolicy: QueryPolicy,
  now: Instant,
): Payout | null {
  // Of an order that the gateway had, doubts begin with the first such answer.
  const unknownSince = payout.unknownSince ?? askedAt
  const notFoundCount =
    payout.notFoundCount + (counts && askedAt >= unknownSince + queryPolicy.graceMs ? 1 : 0)
  return notFoundCount >= queryPolicy.confirmations
    ? null
    : { ...askedInVain(payout, queryPolicy, now), unknownSince, notFoundCount }
}
