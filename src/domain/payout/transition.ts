import type { AnomalyKind } from '../anomaly-kinds.ts'
import type { EvidenceSource, Exchange } from '../evidence.ts'
import { payoutKey } from '../identifiers.ts'
import type { Instant } from '../instant.ts'
import type { Anomaly, Decision, Payout } from './payout.ts'
import { endedUnpaid, isEnd, mayMove, type State } from './states.ts'

export type PayoutFields = Partial<Omit<Payout, 'merchantId' | 'payoutId' | 'version' | 'state'>>

/**
 * The next state with its fields. `dueAt` is when the caller wants payoutd to look again; it never lies beyond the deadline,
 * when a person takes over. Throws on a move that the state table forbids: a bug.
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
    // The gateway charges only for payments: an unpaid end owes no fee, even if the gateway named one before.
    fee: endedUnpaid(state) ? null : next.fee,
  }
}

/** No byte of it ever left. If an attempt was turned away, some did; if the ledger lost an attempt, nobody knows. */
export const wasNeverSent = ({
  accountId,
  doubted,
  turnedAway,
}: Pick<Payout, 'accountId' | 'doubted' | 'turnedAway'>): boolean =>
  accountId === null && !doubted && !turnedAway

/**
 * According to this ledger the gateway cannot have an order of it: it has no attempt, or it waits, is in review or was cancelled and
 * none of its attempts sent a byte. So if the gateway has an order, the ledger lost an attempt.
 */
export const cannotBeThere = (payout: Payout): boolean =>
  payout.attempt === 0 || (UNSENT.includes(payout.state) && wasNeverSent(payout))

const UNSENT: readonly State[] = ['held', 'queued', 'review', 'cancelled']

function dueAt(state: State, { dueAt, deadline }: Payout): Instant | null {
  if (isEnd(state) || state === 'review') return null
  // The deadline does not cut a lease short: while the lease lasts, its owner may still be sending.
  return state === 'submitting' ? dueAt : Math.min(dueAt ?? deadline, deadline)
}

/** A decision that stores the payout together with its evidence. */
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
  kind: AnomalyKind,
  detail: string,
  exchange: Exchange | null,
): { anomaly: Anomaly } {
  const { merchantId, payoutId, orderNo } = payout
  return { anomaly: { merchantId, payoutId, orderNo, kind, detail, source, exchange } }
}
