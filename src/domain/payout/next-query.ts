import type { Instant } from '../instant.ts'
import type { Payout } from './payout.ts'

/** The promises of a gateway, from its dialect, on which payoutd sends a payout again. */
export type GatewayPromises = {
  /** It never pays one order number twice. */
  duplicatesRefused: boolean
  /** The retCodes of apply answers that mean that this attempt is not paid. */
  notPaidCodes: readonly string[]
}

/** When to ask again, and what may be concluded. From the merchant's dialect. */
export type QueryPolicy = GatewayPromises & {
  /** The waits before queries about an accepted or unknown payout, in ms: at least one; the last repeats for ever. */
  queryAfterMs: readonly number[]
  /** How long, in ms, after a result became unknown a "not found" begins to count. */
  graceMs: number
  /** How many counted "not found" in a row confirm absence. */
  confirmations: number
}

/** Of a gateway none of whose promises counts. */
export const PROMISES_NOTHING: GatewayPromises = { duplicatesRefused: false, notPaidCodes: [] }

/** For a merchant that this process cannot ask about: only time changes what is open. A process that has the merchant asks at once. */
export const NOBODY_TO_ASK: QueryPolicy = {
  queryAfterMs: [0],
  graceMs: 0,
  confirmations: 1,
  ...PROMISES_NOTHING,
}

/**
 * The policy of a process whose settings are not in force: it keeps asking, but concludes nothing from a "not found" or a
 * failure in doubt.
 */
export const inconclusive = (queryPolicy: QueryPolicy): QueryPolicy => ({
  ...queryPolicy,
  graceMs: Number.POSITIVE_INFINITY,
  confirmations: Number.POSITIVE_INFINITY,
  ...PROMISES_NOTHING,
})

export const nextQueryAt = (queries: number, queryPolicy: QueryPolicy, now: Instant): Instant =>
  now + (queryPolicy.queryAfterMs[Math.min(queries, queryPolicy.queryAfterMs.length - 1)] as number)

/** Whether payoutd keeps asking the gateway about it. */
export const isAskedAbout = ({ state }: Payout): boolean => state === 'unknown' || state === 'processing'

/**
 * When to ask after a report that payoutd cannot act on: now, but no sooner after the last query than the policy's first
 * wait, so that nobody can make payoutd ask without end.
 */
export const soonestQueryAt = (askedAt: Instant | null, queryPolicy: QueryPolicy, now: Instant): Instant =>
  askedAt === null ? now : Math.max(now, askedAt + (queryPolicy.queryAfterMs[0] as number))

/** The same payout after a report that payoutd cannot act on: the next query comes as soon as it may. */
export function askedSoon(payout: Payout, queryPolicy: QueryPolicy, now: Instant): Payout {
  const soonest = soonestQueryAt(payout.askedAt, queryPolicy, now)
  return payout.dueAt !== null && soonest < payout.dueAt ? { ...payout, dueAt: soonest } : payout
}

/** If nothing has been published about it yet, only a recovery makes it ready, never an answer. */
const mayWait = ({ state, version, cancelRequest }: Payout): boolean =>
  state === 'queued' && version > 0 && cancelRequest === null

/** The same payout with an open question about its order: payoutd does not send it until the gateway has answered. */
export const awaitAnswer = (payout: Payout, now: Instant): Payout =>
  mayWait(payout) ? { ...payout, ready: false, dueAt: payout.deadline, askedAt: now } : payout

/**
 * The same payout after an answer by which it may be sent: one that counts (before its first attempt any does), to a query made
 * after the question was opened. A back-off ends before the deadline, an open question does not.
 */
export function answered(payout: Payout, { askedAt, counts }: CountedAnswer): Payout {
  const isAnswer = (counts || payout.attempt === 0) && (payout.askedAt === null || askedAt > payout.askedAt)
  return isAnswer && mayWait(payout) && payout.dueAt === payout.deadline ? { ...payout, ready: true } : payout
}

/**
 * The same payout, or payin, with doubts that begin anew if answers were mixed up until some time after they began: what counted
 * before may have been about another order.
 */
export const doubtedAnew = <Of extends { unknownSince: Instant | null; notFoundCount: number }>(
  of: Of,
  mixedUntil: Instant | null,
): Of =>
  of.unknownSince !== null && mixedUntil !== null && of.unknownSince < mixedUntil
    ? { ...of, unknownSince: mixedUntil, notFoundCount: 0 }
    : of

/** When payoutd asked, and whether the answer may lead to anything. */
type CountedAnswer = { askedAt: Instant; counts: boolean }

/** Whether payoutd may conclude anything by this policy. */
export const isConclusive = ({ graceMs }: QueryPolicy): boolean => Number.isFinite(graceMs)

/** The same payout after a query that ended nothing: the next wait is the policy's next. */
export function askedInVain(
  payout: Payout,
  queryPolicy: QueryPolicy,
  now: Instant,
): Payout & { dueAt: Instant } {
  const queries = payout.queries + 1
  return { ...payout, queries, dueAt: Math.min(nextQueryAt(queries, queryPolicy, now), payout.deadline) }
}

/**
 * The same payout after an answer that showed no live order. The answer counts (if `counts`) if payoutd asked after the
 * grace period, during which a request on its way may still arrive, and payoutd asks when that ends. Null: this was the last one
 * needed.
 */
export function nothingAlive(
  payout: Payout,
  { askedAt, counts }: CountedAnswer,
  queryPolicy: QueryPolicy,
  now: Instant,
): Payout | null {
  // If the gateway had the order, doubts begin with the first such answer.
  const unknownSince = payout.unknownSince ?? askedAt
  const graceEnds = unknownSince + queryPolicy.graceMs
  const isEarly = askedAt < graceEnds
  const notFoundCount = payout.notFoundCount + (counts && !isEarly ? 1 : 0)
  if (notFoundCount >= queryPolicy.confirmations) return null
  const after = { ...askedInVain(payout, queryPolicy, now), unknownSince, notFoundCount }
  return isEarly ? { ...after, dueAt: Math.min(after.dueAt, graceEnds) } : after
}
