import type { EvidenceSource, Exchange } from '../evidence.ts'
import { payoutKey } from '../identifiers.ts'
import type { Instant } from '../instant.ts'
import type { Anomaly, Decision, Payout } from './payout.ts'
import { isEnd, mayMove, type State } from './states.ts'

export type PayoutFields = Partial<Omit<Payout, 'merchantId' | 'payoutId' | 'version' | 'state'>>

/**
 * The next state with its fields. `dueAt` is what the caller wants to happen next; it never lies beyond the
 * deadline, at which a person takes over. Throws on a move that the state table forbids: a bug.
 */
export function become(payout: Payout, state: State, fields: PayoutFields): Payout {
  if (!mayMove(payout.state, state, payout.attempt, wasNeverSent({ ...payout, ...fields }))) {
    throw new Error(`payout ${payoutKey(payout)} cannot go from ${payout.state} to ${state}`)
  }
  const next = {
    ...payout,
    reason: null,
    refusal: null,
    unreported: false,
    saidOtherwise: null,
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
