import type { EvidenceSource, Exchange } from '../evidence.ts'
import type { Instant } from '../instant.ts'
import type { Anomaly, Decision, Payout } from './payout.ts'
import { isEnd, mayMove, type State } from './states.ts'

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

export type PayoutFields = Partial<Omit<Payout, 'merchantId' | 'payoutId' | 'version' | 'state'>>

/**
 * The next state with its fields. `dueAt` is what the caller wants to happen next; it never lies beyond the
 * deadline, at which a person takes over. Throws on a move that the state table forbids: a bug.
 */
export function become(payout: Payout, state: State, fields: PayoutFields): Payout {
  if (!mayMove(payout.state, state, payout.attempt, wasNeverSent({ ...payout, ...fields }))) {
    throw new Error(
      `payout ${payout.merchantId}:${payout.payoutId} cannot go from ${payout.state} to ${state}`,
    )
  }
  const next = {
    ...payout,
    reason: null,
    refusal: null,
    unreported: false,
    unknownSince: null,
    ready: false,
    queries: 0,
    notFoundCount: 0,
    ...fields,
  }
  const ready = next.ready && next.cancelRequest === null
  const version = payout.version + 1
  return {
    ...next,
    state,
    version,
    ready,
    dueAt: dueAt(state, next),
    fee: paidNothing(state) ? null : next.fee,
  }
}

/** No byte of it ever left. Of an attempt that was turned away some did, and of one that the ledger lost nobody knows. */
export const wasNeverSent = ({
  accountId,
  doubted,
  turnedAway,
}: Pick<Payout, 'accountId' | 'doubted' | 'turnedAway'>): boolean =>
  accountId === null && !doubted && !turnedAway

/**
 * By this ledger the gateway cannot have an order of it: it has no attempt, or waits or was cancelled and none of its attempts
 * sent a byte. So an order that the gateway has shows an attempt that the ledger lost.
 */
export const cannotBeThere = (payout: Payout): boolean =>
  payout.attempt === 0 ||
  ((payout.state === 'held' || payout.state === 'queued' || payout.state === 'cancelled') &&
    wasNeverSent(payout))

/** The gateway charges for what it pays: a fee that it named before is owed no more. */
export const paidNothing = (state: State): boolean => isEnd(state) && state !== 'paid'

function dueAt(state: State, { dueAt, deadline }: Payout): Instant | null {
  if (isEnd(state) || state === 'review') return null
  // A lease is not cut short by the deadline: while it lasts, its owner may still be sending.
  return state === 'submitting' ? dueAt : Math.min(dueAt ?? deadline, deadline)
}

/** A decision that stores the payout, and what was heard with it. */
export const change = (
  before: Payout,
  after: Payout,
  source: EvidenceSource,
  exchange: Exchange | null,
): Decision => ({
  change: { before, after, source, exchange },
})

export function anomaly(
  payout: Payout,
  source: EvidenceSource,
  kind: string,
  detail: string,
  exchange: Exchange | null,
): { anomaly: Anomaly } {
  const { merchantId, payoutId, orderNo } = payout
  return { anomaly: { merchantId, payoutId, orderNo, kind, detail, source, exchange } }
}

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
