import { CANCEL_REQUESTED } from './cancel.ts'
import { awaitsRelease, type HoldReason, isHoldReason } from './holds.ts'
import type { Instant } from './instant.ts'
import type { Decision, Payout } from './payout.ts'
import type { Published, PublishedEnd, PublishedTransition } from './published.ts'
import { awaitsRefusal } from './refused.ts'
import { RESENT } from './resolve.ts'
import { isEnd, type State } from './states.ts'
import { anomaly, become, change, paidNothing } from './transition.ts'

/** What a restored ledger is to hold of a payout after its published story was read. */
export type Recalled = {
  /** In their order; of a version that was published twice, once. */
  lost: PublishedTransition[]
  /** Those under versions that the ledger has come to otherwise since it was set back, in their order. */
  passed: PublishedTransition[]
  after: Payout
  /** It was published that it was sent by an attempt that the ledger lost, and not that this came to nothing. */
  sent: boolean
  /** It was held for a person by the ledger that was lost, and is held again; null: it is not for that. */
  held: HeldBefore | null
  /** What the published end, which cannot be taken over, does to `after`; or that it is told again, or held, or is a person's. */
  doubt: Decision | null
}

/** For what a payout was published as held for a person, and since when. */
export type HeldBefore = { reason: HoldReason; at: Instant }

/** Why a payout is in review whose end was published, and is not the end of the story that the ledger has. */
export const END_PUBLISHED = 'end-published'

/** Why a payout is in review that was published before its command came (again), and of which no end was. */
export const PUBLISHED_BEFORE = 'published-before'

/** How the detail of an anomaly about a published end begins. */
export const publishedAs = ({
  status,
  version,
  evidence,
}: Pick<PublishedEnd, 'version' | 'evidence'> & { status: State }): string =>
  `it was published as ${status} (version ${version}, by ${evidence})`

/**
 * Gives an open payout back what was published of it and lost: versions, attempts, and its end. A published end is the
 * only one that anybody may be told, so it is taken over, whoever proved it; and never is the payout sent once more. Where it
 * cannot be the end of this payout (another amount or order; the ledger has gone on under its version, or is sending),
 * it is a person's to decide about, or the gateway has it: it is not sent once more. Versions go on above the highest
 * that was published. `passed`: what was published under versions that the ledger has come to otherwise, in its order.
 */
export function recall(payout: Payout, published: Published, passed: PublishedTransition[] = []): Recalled {
  const { transitions, submitted, end, highest } = published
  const ends = end !== null && isEndOf(payout, end, transitions)
  const lost = lostSince(payout, published, ends ? end : null).filter(
    ({ version }) => !(ends && version > end.version),
  )
  const unknown = [...passed, ...lost]
  const lostSubmits =
    [...submitted].filter((version) => version > payout.version).length + submitsAmong(passed)
  const attempt = Math.max(payout.attempt + lostSubmits, attemptsIn(submitted, unknown))
  const version = ends ? end.version : Math.max(payout.version, highest)
  const cancelRequest = payout.cancelRequest ?? (wasToBeCancelled(unknown) ? CANCEL_LOST : null)
  const known = {
    ...payout,
    attempt,
    version,
    // What the gateway said to an attempt that was lost may have been "later", or nothing; and of which the order was that is known.
    ...(attempt > payout.attempt && {
      doubted: true,
      absenceConfirmed: false,
      turnedAway: true,
      agentpayOrderId: null,
      fee: null,
      utr: null,
    }),
    cancelRequest,
    ready: payout.ready && cancelRequest === null,
  }
  const read = { lost, passed, held: null }
  if (ends) return { ...read, after: ended(known, end), sent: false, doubt: null }
  const sent = attempt > payout.attempt && !cameToNothing(unknown)
  const isOtherwise = isOtherwisePublished(known, published)
  // What waits and was sent, or is to be refused, is told once the gateway was asked about it.
  const isToldLater = (sent && waits(known)) || awaitsRefusal(known)
  if (end) return { ...read, after: known, sent, doubt: inDoubt(known, end, isOtherwise) }
  const held = heldBefore(known, published)
  if (held) return { ...read, after: known, sent, held, doubt: heldAgain(known, held) }
  return { ...read, after: known, sent, doubt: isOtherwise && !isToldLater ? toldAgain(known) : null }
}

/**
 * The same for a payout whose command comes (again) once a recovery has read what was published: the gateway may not be
 * asked about it any more before it would be sent. So it is never ready, and without an end it is a person's.
 */
export function recallLate(
  payout: Payout,
  published: Published,
  passed: PublishedTransition[] = [],
): Recalled {
  const recalled = recall({ ...payout, ready: false }, published, passed)
  const { after } = recalled
  if (isEnd(after.state) || published.end || !waits(after)) return recalled
  const note = 'published before its command came (again): it may have been sent by a ledger that was lost'
  const moved = become({ ...after, doubted: true, absenceConfirmed: false }, 'review', {
    reason: PUBLISHED_BEFORE,
  })
  return { ...recalled, held: null, doubt: change(after, moved, 'COMMAND', { note }) }
}

const waits = ({ state }: Pick<Payout, 'state'>): boolean => state === 'held' || state === 'queued'

/** Under its version, or above it, the payout was last published as another state before the ledger was set back. */
export const isOtherwisePublished = (
  { state, version }: Pick<Payout, 'state' | 'version'>,
  { transitions, end, highest }: Published,
): boolean =>
  highest >= version &&
  (transitions.some((each) => each.version === highest && each.toState !== state) ||
    (end !== null && end.version === highest && end.status !== state))

/**
 * A payout that waits for no release, though the last that was published of it is that it waits for one. Intake compares a
 * command that it reads again with what the ledger has by then, in whichever order partitions are read, in the pay period of now,
 * and before anybody knows what was paid: nothing of that tells that a person need not look. Null: there is no such payout.
 */
export function heldBefore(
  payout: Pick<Payout, 'state' | 'reason'>,
  { transitions, highest }: Published,
): HeldBefore | null {
  if (!waits(payout) || awaitsRelease(payout) || awaitsRefusal(payout)) return null
  const last = transitions.filter(({ version, toState }) => version === highest && toState === 'held')
  const [held] = last.flatMap(({ reason, at }) => (isHoldReason(reason) ? [{ reason, at }] : []))
  return held ?? null
}

function heldAgain(payout: Payout, { reason }: HeldBefore): Decision {
  const note =
    'held again: before the ledger was set back it was held for a person, and it was not published as released'
  const held = become(payout, 'held', { reason, dueAt: payout.deadline })
  return change(payout, held, 'OPERATOR', { note })
}

/** Whoever drops what has an event id that is known never heard of the state in which the payout is. */
function toldAgain(payout: Payout): Decision {
  const note = 'told again: before the ledger was set back something else was published under its version'
  return change(payout, { ...payout, version: payout.version + 1 }, 'OPERATOR', { note })
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

/** What was published above the version of the payout, in its order and each version once; `end`: also where no event tells of it. */
export function lostSince(
  payout: Payout,
  { transitions }: Pick<Published, 'transitions'>,
  end: PublishedEnd | null,
): PublishedTransition[] {
  const byVersion = new Map(transitions.map((each) => [each.version, each]))
  if (end && !byVersion.has(end.version)) byVersion.set(end.version, endingOf(payout, end, transitions))
  return [...byVersion.values()]
    .filter(({ version }) => version > payout.version)
    .sort((a, b) => a.version - b.version)
}

/** The transition of which nothing but its end was published. */
function endingOf(
  payout: Payout,
  { version, status, reason, evidence, at }: PublishedEnd,
  transitions: readonly PublishedTransition[],
): PublishedTransition {
  const before = transitions.filter((each) => each.version < version).sort((a, b) => b.version - a.version)[0]
  return { version, fromState: before?.toState ?? payout.state, toState: status, reason, evidence, at }
}

function ended(payout: Payout, end: PublishedEnd): Payout {
  const { status, version, reason, evidence } = end
  return {
    ...payout,
    state: status,
    version,
    reason,
    // Only an attempt leads there, also where nothing else of the story was published.
    attempt: status === 'paid' || status === 'failed' ? Math.max(1, payout.attempt) : payout.attempt,
    agentpayOrderId: end.agentpayOrderId ?? payout.agentpayOrderId,
    fee: paidNothing(status) ? null : (end.fee ?? payout.fee),
    utr: end.utr ?? payout.utr,
    refusal: null,
    // A query may have shown that it failed, or that it is absent, and what was published does not tell which.
    unreported: status === 'failed' && evidence !== 'CALLBACK',
    unknownSince: null,
    queries: 0,
    absences: 0,
    ready: false,
    dueAt: null,
  }
}

const CANCEL_LOST = 'asked for before the ledger was set back, as was published'

/** A person was to decide about it for that, and did not send it again since. */
const wasToBeCancelled = (lost: readonly PublishedTransition[]): boolean =>
  lost.findLast(({ reason }) => reason === CANCEL_REQUESTED || reason === RESENT)?.reason === CANCEL_REQUESTED

export const submitsAmong = (transitions: readonly PublishedTransition[]): number =>
  new Set(transitions.flatMap(({ toState, version }) => (toState === 'submitting' ? [version] : []))).size

/** Each attempt was answered in a way that leaves nothing of it: the payout was queued again straight away. */
const cameToNothing = (lost: readonly PublishedTransition[]): boolean =>
  lost.length > 0 &&
  lost.at(-1)?.toState !== 'submitting' &&
  lost.every(({ fromState, toState }) =>
    fromState === 'submitting'
      ? toState === 'queued'
      : fromState === null || fromState === 'held' || fromState === 'queued',
  )

/** The states that only an attempt leads to. */
export const SENT: readonly (State | null)[] = ['submitting', 'unknown', 'processing']

/** At least so many, as part of the story may be in Kafka no more. */
const attemptsIn = (submitted: ReadonlySet<number>, lost: readonly PublishedTransition[]): number =>
  submitted.size > 0 ||
  !lost.some(({ fromState, toState }) => SENT.includes(fromState) || SENT.includes(toState))
    ? submitted.size
    : 1

/** From a gateway that has the payout nothing leads back to dispatch but a person; what else is open goes to one. */
function inDoubt(payout: Payout, end: PublishedEnd, isOtherwise: boolean): Decision {
  const detail = `${publishedAs(end)}, which the ledger lost and cannot take over`
  const told = anomaly(payout, 'OPERATOR', END_PUBLISHED, detail, null)
  const { state, reason } = payout
  if (state === 'processing' || (state === 'review' && reason === END_PUBLISHED))
    return isOtherwise ? { ...told, ...toldAgain(payout) } : told
  const after: Payout =
    state === 'review'
      ? { ...payout, reason: END_PUBLISHED, version: payout.version + 1 }
      : become(payout, 'review', { reason: END_PUBLISHED })
  return { ...told, ...change(payout, after, 'OPERATOR', { note: detail }) }
}
