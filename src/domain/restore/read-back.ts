import { awaitsRelease, type HoldReason, isHoldReason } from '../commands/holds.ts'
import { awaitsRefusal } from '../commands/refused.ts'
import type { Instant } from '../instant.ts'
import { CANCEL_REQUESTED } from '../payout/cancel.ts'
import type { Decision, Payout } from '../payout/payout.ts'
import { RESENT } from '../payout/resolve.ts'
import { isEnd } from '../payout/states.ts'
import { anomaly, become, change, paidNothing } from '../payout/transition.ts'
import { END_PUBLISHED, otherEndTold, publishedAs } from './published-otherwise.ts'
import {
  lackedEnds,
  type Published,
  type PublishedEnd,
  type PublishedTransition,
  SENT,
  submitsAmong,
  transitionsOf,
} from './published-story.ts'

/** What a restored ledger is to hold of a payout after its published story was read. */
export type StoryReadBack = {
  /** In their order; of a version that was published twice, what was told last. */
  lost: PublishedTransition[]
  /** What else its own story lacks, in its order: under each of these versions stands something else. */
  passed: PublishedTransition[]
  after: Payout
  /** The published end that it is about: the latest that the ledger lacks. Taken over, if `after` has ended. */
  end: PublishedEnd | null
  /** It was published that it was sent by an attempt that the ledger lost, and not that this came to nothing. */
  sent: boolean
  /** It was held for a person by the ledger that was lost, and is held again; null: it is not for that. */
  held: HeldBefore | null
  /** What the published ends that cannot be taken over do to `after`; or that it is told again, or held, or is a person's. */
  doubts: Decision[]
}

/** Where it stands then. */
export const standsAt = ({ after, doubts }: Pick<StoryReadBack, 'after' | 'doubts'>): Payout =>
  doubts.flatMap((each) => ('change' in each ? [each.change.after] : []))[0] ?? after

/** For what a payout was published as held for a person, and since when. */
export type HeldBefore = { reason: HoldReason; at: Instant }

/** Why a payout is in review that was published before its command came (again), and of which no end was. */
export const PUBLISHED_BEFORE = 'published-before'

/**
 * Gives an open payout back what was published of it and lost: versions, attempts, and its end. A published end is the
 * only one that anybody may be told, so it is taken over, whoever proved it; and never is the payout sent once more. Where it
 * cannot be the end of this payout (another amount or order; something else was published above it, or the ledger has sent it
 * and come to something else), it is a person's to decide about, or the gateway has it: it is not sent once more. Versions
 * go on above the highest that was published. A ledger that was set back more than once has several stories in Kafka, with
 * the same versions, and all of them count. `passedSince`: what was published under versions that the ledger has come to
 * otherwise, in its order.
 */
export function readBackStory(
  payout: Payout,
  published: Published,
  passedSince: readonly PublishedTransition[] = [],
): StoryReadBack {
  const { submitted, highest } = published
  const { lost, passed } = lackedBy(payout, published, passedSince)
  const unknown = [...passed, ...lost]
  const ends = lackedEnds(payout, published, passed)
  const end = ends[0] ?? null
  const isOneStory = passed.length === 0 || (passed.length === passedSince.length && payout.attempt === 0)
  const isTaken = end !== null && isOneStory && isEndOf(payout, end, published)
  const lostSubmits = new Set(
    [...submitted].filter((version) => version > payout.version).concat(submitsAmong(passed)),
  )
  const attempt = Math.max(payout.attempt + lostSubmits.size, attemptsIn(submitted, unknown))
  const version = Math.max(payout.version, highest)
  const cancelRequest = payout.cancelRequest ?? ([passed, lost].some(wasToBeCancelled) ? CANCEL_LOST : null)
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
    orderShown: payout.orderShown || transitionsOf(published).some(showsOrder),
  }
  const read = { lost, passed, end, held: null }
  if (isTaken) return { ...read, after: ended(known, end), sent: false, doubts: [] }
  const sent = attempt > payout.attempt && !cameToNothing(unknown)
  const isOtherwise = isOtherwisePublished(known, published)
  if (end) {
    const others = ends.slice(1).map((each) => ({ anomaly: otherEndTold(known, each) }))
    return { ...read, after: known, sent, doubts: [inDoubt(known, end, isOtherwise), ...others] }
  }
  // What waits and was sent, or is to be refused, is told once the gateway was asked about it.
  const isToldLater = (sent && waits(known)) || awaitsRefusal(known)
  const review = reviewBefore(known, published)
  if (review) return { ...read, after: known, sent, doubts: [inReviewAgain(known, review)] }
  const held = heldBefore(known, published)
  if (held) return { ...read, after: known, sent, held, doubts: [heldAgain(known, held)] }
  return { ...read, after: known, sent, doubts: isOtherwise && !isToldLater ? [toldAgain(known)] : [] }
}

/**
 * The same for a payout whose command comes (again) once a recovery has read what was published: the gateway may not be
 * asked about it any more before it would be sent. So it is never ready, and without an end it is a person's.
 */
export function readBackLate(
  payout: Payout,
  published: Published,
  passed: readonly PublishedTransition[] = [],
): StoryReadBack {
  const recalled = readBackStory({ ...payout, ready: false }, published, passed)
  const { after, end } = recalled
  if (isEnd(after.state) || end || !waits(after)) return recalled
  const note = 'published before its command came (again): it may have been sent by a ledger that was lost'
  const moved = become({ ...after, doubted: true, absenceConfirmed: false }, 'review', {
    reason: PUBLISHED_BEFORE,
  })
  return { ...recalled, held: null, doubts: [change(after, moved, 'COMMAND', { note })] }
}

/** The gateway had the order then. */
const showsOrder = ({ toState, reason }: PublishedTransition): boolean =>
  toState === 'processing' || (toState === 'unknown' && reason === 'duplicate')

const waits = ({ state }: Pick<Payout, 'state'>): boolean => state === 'held' || state === 'queued'

/** Under its version, or above it, the payout was last published as another state before the ledger was set back. */
export const isOtherwisePublished = (
  { state, version }: Pick<Payout, 'state' | 'version'>,
  published: Published,
): boolean =>
  published.highest >= version &&
  transitionsOf(published).some((each) => each.version === published.highest && each.toState !== state)

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

/**
 * Why a payout that waits was for a person to decide about, as the last that was published of it says. They may have paid it in
 * another way since. Null: it was not.
 */
export function reviewBefore(
  payout: Pick<Payout, 'state' | 'reason'>,
  { transitions, highest }: Published,
): string | null {
  if (!waits(payout) || awaitsRefusal(payout)) return null
  const last = transitions.find(({ version, toState }) => version === highest && toState === 'review')
  return last ? (last.reason ?? PUBLISHED_BEFORE) : null
}

function inReviewAgain(payout: Payout, reason: string): Decision {
  const note =
    'in review again: before the ledger was set back a person was to decide about it, and nothing that led out of that was published'
  return change(payout, become(payout, 'review', { reason }), 'OPERATOR', { note })
}

/** Whoever drops what has an event id that is known never heard of the state in which the payout is. */
function toldAgain(payout: Payout): Decision {
  const note = 'told again: before the ledger was set back something else was published under its version'
  return change(payout, { ...payout, version: payout.version + 1 }, 'OPERATOR', { note })
}

/** The last that was published, and of this payout. */
function isEndOf(payout: Payout, end: PublishedEnd, { transitions, highest }: Published): boolean {
  const isAboutIt =
    end.amount === payout.amount &&
    end.currency === payout.currency &&
    (end.orderNo === null || end.orderNo === payout.orderNo)
  // Of an old payout its story may not be kept to compare.
  const hasForked =
    payout.attempt > 0 &&
    transitions.some(({ version, toState }) => version === payout.version && toState !== payout.state)
  return isAboutIt && end.version > payout.version && end.version === highest && !hasForked
}

/**
 * What was published of a payout and its own story lacks: what is lost above its version, of each version what was told last; and
 * what has passed, under versions that stand for something else.
 */
export function lackedBy(
  payout: Payout,
  published: Published,
  passedSince: readonly PublishedTransition[],
): Pick<StoryReadBack, 'lost' | 'passed'> {
  const above = transitionsOf(published).filter(({ version }) => version > payout.version)
  const last = new Map(above.map((each) => [each.version, each]))
  const inOrder = (a: PublishedTransition, b: PublishedTransition) => a.version - b.version
  const lost = [...last.values()].sort(inOrder)
  const forked = above.filter((each) => last.get(each.version) !== each).sort(inOrder)
  // Of a result alone nothing tells what was before.
  const from = (at: number) => lost[at - 1]?.toState ?? payout.state
  return {
    lost: lost.map((each, at) =>
      each.version === 1 ? each : { ...each, fromState: each.fromState ?? from(at) },
    ),
    passed: [...passedSince, ...forked],
  }
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
    saidOtherwise: null,
    unknownSince: null,
    queries: 0,
    notFoundCount: 0,
    ready: false,
    dueAt: null,
  }
}

const CANCEL_LOST = 'asked for before the ledger was set back, as was published'

/** A person was to decide about it for that, and did not send it again since. */
const wasToBeCancelled = (lost: readonly PublishedTransition[]): boolean =>
  lost.findLast(({ reason }) => reason === CANCEL_REQUESTED || reason === RESENT)?.reason === CANCEL_REQUESTED

/** Each attempt was answered in a way that leaves nothing of it: the payout was queued again straight away. */
const cameToNothing = (lost: readonly PublishedTransition[]): boolean =>
  lost.length > 0 &&
  lost.at(-1)?.toState !== 'submitting' &&
  lost.every(({ fromState, toState }) =>
    fromState === 'submitting'
      ? toState === 'queued'
      : fromState === null || fromState === 'held' || fromState === 'queued',
  )

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
