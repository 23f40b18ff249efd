import type { EvidenceSource } from './evidence.ts'
import type { Paise } from './money.ts'
import type { Decision, Payout } from './payout.ts'
import type { End, State } from './states.ts'
import { anomaly, become, change, paidNothing } from './transition.ts'

/** A transition that was published, as schemas/PayoutEvent.avsc tells it. */
export type PublishedTransition = {
  version: number
  fromState: State | null
  toState: State
  reason: string | null
  evidence: EvidenceSource
}

/** An end that was published. `told`: as a result too, so that all of it is known. */
export type PublishedEnd = {
  status: End
  version: number
  reason: string | null
  evidence: EvidenceSource
  /** Null of a command that was rejected. */
  orderNo: string | null
  amount: Paise
  currency: string
  agentpayOrderId: string | null
  fee: Paise | null
  utr: string | null
  told: boolean
}

/** What was published of a payout, as far as it tells something that a restored ledger may lack. */
export type Published = {
  /** From the version on that the ledger has; any order, and repeats. */
  transitions: readonly PublishedTransition[]
  /** The versions by which it was sent. */
  submitted: ReadonlySet<number>
  end: PublishedEnd | null
}

/** What a restored ledger is to hold of a payout after its published story was read. */
export type Recalled = {
  /** In their order; of a version that was published twice, once. */
  lost: PublishedTransition[]
  after: Payout
  /** It was published that it was sent by an attempt that the ledger lost, and not that this came to nothing. */
  sent: boolean
  /** What the published end, which cannot be taken over, does to `after`. */
  doubt: Decision | null
}

/** Why a payout is in review whose end was published, and is not the end of the story that the ledger has. */
export const END_PUBLISHED = 'end-published'

/**
 * Gives an open payout back what was published of it and lost: versions, attempts, and its end. A published end is the
 * only one that anybody may be told, so it is taken over, whoever proved it; and never is the payout sent once more. Where it
 * cannot be the end of this payout (another amount or order; the ledger has gone on under its version, or is sending),
 * what waits is a person's to decide about. Versions go on above the highest that was published.
 */
export function recall(payout: Payout, { transitions, submitted, end }: Published): Recalled {
  const ends = end !== null && isEndOf(payout, end, transitions)
  const byVersion = new Map(transitions.map((each) => [each.version, each]))
  if (ends) byVersion.set(end.version, endingOf(payout, end, byVersion.get(end.version)))
  const lost = [...byVersion.values()]
    .filter(({ version }) => version > payout.version && !(ends && version > end.version))
    .sort((a, b) => a.version - b.version)
  const attempt = Math.max(payout.attempt, attemptsIn(submitted, lost))
  const version = Math.max(payout.version, lost.at(-1)?.version ?? 0)
  // What the gateway said to an attempt that was lost may have been "later".
  const known = { ...payout, attempt, version, turnedAway: payout.turnedAway || attempt > payout.attempt }
  if (ends) return { lost, after: ended(known, end), sent: false, doubt: null }
  const sent = attempt > payout.attempt && !cameToNothing(lost)
  return { lost, after: known, sent, doubt: end && inDoubt(known, end) }
}

function isEndOf(payout: Payout, end: PublishedEnd, transitions: readonly PublishedTransition[]): boolean {
  const isAboutIt =
    end.amount === payout.amount &&
    end.currency === payout.currency &&
    (end.orderNo === null || end.orderNo === payout.orderNo)
  const isSending = SENT.includes(payout.state)
  const forked = transitions.some((each) => each.version === payout.version && each.toState !== payout.state)
  return isAboutIt && end.version > payout.version && !(isSending && forked)
}

const endingOf = (
  payout: Payout,
  { version, status, reason, evidence }: PublishedEnd,
  told: PublishedTransition | undefined,
): PublishedTransition => told ?? { version, fromState: payout.state, toState: status, reason, evidence }

function ended(payout: Payout, end: PublishedEnd): Payout {
  const { status, version, reason } = end
  return {
    ...payout,
    state: status,
    version,
    reason,
    attempt: status === 'paid' ? Math.max(1, payout.attempt) : payout.attempt,
    agentpayOrderId: end.agentpayOrderId ?? payout.agentpayOrderId,
    fee: paidNothing(status) ? null : end.fee,
    utr: end.utr ?? payout.utr,
    refusal: null,
    unknownSince: null,
    queries: 0,
    absences: 0,
    ready: false,
    dueAt: null,
  }
}

/** Each attempt was answered in a way that leaves nothing of it: the payout was queued again straight away. */
const cameToNothing = (lost: readonly PublishedTransition[]): boolean =>
  lost.at(-1)?.toState !== 'submitting' &&
  lost.every(({ fromState, toState }) =>
    fromState === 'submitting' ? toState === 'queued' : fromState === 'held' || fromState === 'queued',
  )

/** The states that only an attempt leads to. */
const SENT: readonly (State | null)[] = ['submitting', 'unknown', 'processing']

/** At least so many, as part of the story may be in Kafka no more. */
const attemptsIn = (submitted: ReadonlySet<number>, lost: readonly PublishedTransition[]): number =>
  submitted.size > 0 ||
  !lost.some(({ fromState, toState }) => SENT.includes(fromState) || SENT.includes(toState))
    ? submitted.size
    : 1

function inDoubt(payout: Payout, end: PublishedEnd): Decision {
  const detail = `it was published as ${end.status} (version ${end.version}, by ${end.evidence}), which the ledger lost and cannot take over`
  const told = anomaly(payout, 'OPERATOR', END_PUBLISHED, detail, null)
  if (payout.state !== 'held' && payout.state !== 'queued') return told
  const after = become(payout, 'review', { reason: END_PUBLISHED })
  return { ...told, ...change(payout, after, 'OPERATOR', { note: detail }) }
}
