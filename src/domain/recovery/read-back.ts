import { type HoldReason, isHoldReason } from '../commands/holds.ts'
import { awaitsRefusal } from '../commands/refused.ts'
import type { Instant } from '../instant.ts'
import { CANCEL_REQUESTED } from '../payout/cancel.ts'
import { withOrderBesides } from '../payout/order-shown.ts'
import type { Decision, Payout } from '../payout/payout.ts'
import { RESENT } from '../payout/resolve.ts'
import { DOUBT } from '../payout/several-orders.ts'
import { endedUnpaid, isEnd } from '../payout/states.ts'
import { anomaly, become, change, wasNeverSent } from '../payout/transition.ts'
import { leftToPerson } from './left-to-person.ts'
import { END_PUBLISHED, ofPublished, otherEndReported, publishedAs, withUtr } from './published-otherwise.ts'
import {
  isOfAttempt,
  lackedEnds,
  NOTHING_OWN,
  type OwnStory,
  type Published,
  type PublishedEnd,
  type PublishedTransition,
  showsOrder,
  storiesOf,
  transitionsOf,
} from './published-story.ts'

/** What a restored ledger should hold of a payout, now that payoutd has read its published story. */
export type StoryReadBack = {
  /** In order; if a version was published twice, the last one. */
  lost: PublishedTransition[]
  /** What else its own story lacks, in order: the ledger has something else under each of these versions. */
  passed: PublishedTransition[]
  /** When the attempts were submitted that the ledger lost, as far as that is known. */
  submitted: Instant[]
  after: Payout
  /** The latest published end that the ledger lacks. If `after` has ended, the ledger took this end over. */
  end: PublishedEnd | null
  /** It was published as sent by an attempt that the ledger lost, and not that this attempt came to nothing. */
  sent: boolean
  /** The lost ledger held it for a person, so it is held again; null: it does not apply. */
  held: HeldBefore | null
  /** What happens to `after`: a published end that cannot be taken over, republishing, a new hold, or review. */
  doubts: Decision[]
}

/** The payout as it is after the doubts. */
export const standsAt = ({ after, doubts }: Pick<StoryReadBack, 'after' | 'doubts'>): Payout =>
  doubts.flatMap((each) => ('change' in each ? [each.change.after] : []))[0] ?? after

/** Why, and since when, a payout was published as held for a person. */
export type HeldBefore = { reason: HoldReason; at: Instant }

/** Why a payout is in review: it was published, without an end, before its command came (again). */
export const PUBLISHED_BEFORE = 'published-before'

/**
 * Gives an open payout back what was published and lost: versions, attempts, and its end. payoutd may publish only one end,
 * so it takes a published end over, whatever proved it, and never sends the payout again. If this cannot be the end of this
 * payout (another amount or order; something else published above it; or the ledger has sent it and got another result), a
 * person decides, or the gateway has it; payoutd does not send it again. Versions continue above the highest published one.
 * A ledger that was set back more than once has several stories in Kafka with the same versions, and all of them count.
 * What was left to a person is theirs again (see `leftToPerson`).
 * `passedSince`: published transitions, in order, whose versions the ledger has since used otherwise. `own`: what the
 * ledger itself has of the payout.
 */
export function readBackStory(
  payout: Payout,
  published: Published,
  passedSince: readonly PublishedTransition[] = [],
  own: OwnStory = NOTHING_OWN,
): StoryReadBack {
  const { highest } = published
  const kept = new Set(own.submitted)
  const submitted = published.submitted.union(kept)
  const { lost, passed } = lackedBy(payout, published, passedSince)
  const unknown = [...passed, ...lost]
  const ends = lackedEnds(payout, published, passed)
  const end = ends[0] ?? null
  const isOneStory =
    storiesOf(unknown, own).length <= 1 &&
    (passed.length === 0 || (passed.length === passedSince.length && payout.attempt === 0))
  const isSentSince = end !== null && [...submitted].some((at) => at > end.at)
  const isTaken = end !== null && isOneStory && !isSentSince && isEndOf(payout, end, published)
  const lostSubmits = published.submitted.difference(kept)
  const wasShown = transitionsOf(published).some(showsOrder)
  // Kafka may no longer have its submission.
  const lostAttempts = Math.max(lostSubmits.size, wasShown && wasNeverSent(payout) ? 1 : 0)
  const attempt = Math.max(payout.attempt + lostAttempts, attemptsIn(submitted, unknown))
  const version = Math.max(payout.version, highest)
  const cancelRequest = payout.cancelRequest ?? ([passed, lost].some(wasToBeCancelled) ? CANCEL_LOST : null)
  const known = {
    ...payout,
    attempt,
    version,
    // The gateway may have answered "later", or nothing, to a lost attempt, and nobody knows which attempt the known order
    // belongs to.
    ...(attempt > payout.attempt && {
      ...DOUBT,
      turnedAway: true,
      agentpayOrderId: null,
      fee: null,
      utr: null,
    }),
    cancelRequest,
    ready: payout.ready && cancelRequest === null,
    orderShown: payout.orderShown || wasShown,
  }
  const read = { lost, passed, submitted: [...lostSubmits].sort((a, b) => a - b), end, held: null }
  if (isTaken) {
    // No message says which account paid. If the ledger lacks attempts, it may be any.
    const isOfUnknown = end.status === 'paid' && attempt > payout.attempt
    const taken = isOfUnknown ? { ...known, accountId: null } : known
    return { ...read, after: ended(taken, end), sent: false, doubts: [] }
  }
  const sent = attempt > payout.attempt && !cameToNothing(unknown)
  const isOtherwise = isOtherwisePublished(known, published)
  if (end) {
    const others = ends.slice(1).map((each) => ({ anomaly: otherEndReported(known, each) }))
    return { ...read, after: known, sent, doubts: [inDoubt(known, end, isOtherwise), ...others] }
  }
  // If it waits although it was sent, or is to be refused, payoutd publishes it after it has asked the gateway.
  const isToldLater = (sent && waits(known)) || awaitsRefusal(known)
  const left = leftToPerson(payout, published, unknown)
  const held = left && waits(known) ? holdIn(left) : null
  if (held) return { ...read, after: known, sent, held, doubts: [heldAgain(known, held)] }
  if (left) return { ...read, after: known, sent, doubts: [inReviewAgain(known, left)] }
  return { ...read, after: known, sent, doubts: isOtherwise && !isToldLater ? [toldAgain(known)] : [] }
}

/**
 * The same for a payout whose command comes (again) after a recovery has read the published story: payoutd may not get to
 * ask the gateway before it would send it. So it is never ready, and without an end it goes to a person.
 */
export function readBackLate(
  payout: Payout,
  published: Published,
  passed: readonly PublishedTransition[] = [],
  own: OwnStory = NOTHING_OWN,
): StoryReadBack {
  const recalled = readBackStory({ ...payout, ready: false }, published, passed, own)
  const { after, end } = recalled
  if (isEnd(after.state) || end || !waits(after)) return recalled
  const note =
    'payoutd had published it before its command came (again): a ledger that was lost may have sent it'
  const moved = become({ ...after, ...DOUBT }, 'review', {
    reason: PUBLISHED_BEFORE,
  })
  return { ...recalled, held: null, doubts: [change(after, moved, 'COMMAND', { note })] }
}

const waits = ({ state }: Pick<Payout, 'state'>): boolean => state === 'held' || state === 'queued'

/** Whether its own version, or a higher one, was last published with another state before the ledger was set back. */
const isOtherwisePublished = (
  { state, version }: Pick<Payout, 'state' | 'version'>,
  published: Published,
): boolean =>
  published.highest >= version &&
  transitionsOf(published).some((each) => each.version === published.highest && each.toState !== state)

const holdIn = ({ toState, reason, at }: PublishedTransition): HeldBefore | null =>
  toState === 'held' && isHoldReason(reason) ? { reason, at } : null

function heldAgain(payout: Payout, { reason }: HeldBefore): Decision {
  const note =
    'held again: before the ledger was set back it was held for a person, and nobody published its release'
  const held = become(payout, 'held', { reason, dueAt: payout.deadline })
  return change(payout, held, 'OPERATOR', { note })
}

/** Also one under way: evidence can still end it, but no answer sends it again. */
function inReviewAgain(payout: Payout, { reason }: PublishedTransition): Decision {
  const note =
    'in review again: it was in review before the ledger was set back, and nothing was published that led out of that'
  return change(payout, become(payout, 'review', { reason: reason ?? PUBLISHED_BEFORE }), 'OPERATOR', {
    note,
  })
}

/** Whoever drops what has an event id that is known never heard of the state in which the payout is. */
function toldAgain(payout: Payout): Decision {
  const note =
    'published again: before the ledger was set back, payoutd had published something else under this version'
  return change(payout, { ...payout, version: payout.version + 1 }, 'OPERATOR', { note })
}

/** Whether this end was published last, and belongs to this payout. */
function isEndOf(payout: Payout, end: PublishedEnd, { transitions, highest }: Published): boolean {
  const isAboutIt =
    end.amount === payout.amount &&
    end.currency === payout.currency &&
    (end.orderNo === null || end.orderNo === payout.orderNo)
  // For an old payout, the story to compare may no longer exist.
  const hasForked =
    payout.attempt > 0 &&
    transitions.some(({ version, toState }) => version === payout.version && toState !== payout.state)
  return isAboutIt && end.version > payout.version && end.version === highest && !hasForked
}

/**
 * The published transitions that its own story lacks. `lost`: above its version, the last one published for each version.
 * `passed`: those whose versions now mean something else.
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
  // A result alone does not show the state before.
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
    // Only an attempt leads there, even if nothing else of the story was published.
    attempt: status === 'paid' || status === 'failed' ? Math.max(1, payout.attempt) : payout.attempt,
    agentpayOrderId: end.agentpayOrderId ?? payout.agentpayOrderId,
    fee: endedUnpaid(status) ? null : (end.fee ?? payout.fee),
    utr: end.utr ?? payout.utr,
    refusal: null,
    // A query may have shown failure or absence; the message does not say which.
    unreported: status === 'failed' && evidence !== 'CALLBACK',
    saidOtherwise: null,
    unknownSince: null,
    queries: 0,
    notFoundCount: 0,
    ready: false,
    dueAt: null,
  }
}

const CANCEL_LOST = 'requested before the ledger was set back, as published'

/** The payout was in review because of a request to cancel, and nobody sent it again since. */
const wasToBeCancelled = (lost: readonly PublishedTransition[]): boolean =>
  lost.findLast(({ reason }) => reason === CANCEL_REQUESTED || reason === RESENT)?.reason === CANCEL_REQUESTED

/** Every answer showed that its attempt left nothing: the payout was queued again at once. */
const cameToNothing = (lost: readonly PublishedTransition[]): boolean =>
  lost.length > 0 &&
  lost.at(-1)?.toState !== 'submitting' &&
  lost.every(({ fromState, toState }) =>
    fromState === 'submitting'
      ? toState === 'queued'
      : fromState === null || fromState === 'held' || fromState === 'queued',
  )

/** At least this many: Kafka may no longer have the submission of what was sent before the first one that it has. */
function attemptsIn(submitted: Published['submitted'], lost: readonly PublishedTransition[]): number {
  const first = Math.min(...submitted)
  const isEarlier = lost.some((each) => each.at < first && isOfAttempt(each))
  return submitted.size + (isEarlier ? 1 : 0)
}

/**
 * Once the gateway has the payout, only a person can bring it back to dispatch; any other open payout goes to a person. What is
 * known then is the published payment's, and no other order's.
 */
function inDoubt(payout: Payout, end: PublishedEnd, isOtherwise: boolean): Decision {
  const detail = `${publishedAs(end)}${withUtr(end.utr)}, which the ledger lost and cannot take over`
  const report = anomaly(payout, 'OPERATOR', END_PUBLISHED, detail, null)
  // A payment that was published shows an order, which may be another than the known one.
  const there = end.status === 'paid' ? withOrderBesides(payout) : payout
  const moved = (after: Payout) => ({ ...report, ...change(payout, after, 'OPERATOR', { note: detail }) })
  const { state, reason, version } = payout
  if (state === 'processing' || (state === 'review' && reason === END_PUBLISHED))
    return moved(isOtherwise ? { ...there, version: version + 1 } : there)
  const known = {
    ...there,
    doubted: there.doubted || payout.attempt > 0,
    ...(end.status === 'paid' && ofPublished(end)),
  }
  return moved(
    state === 'review'
      ? { ...known, reason: END_PUBLISHED, version: version + 1 }
      : become(known, 'review', { reason: END_PUBLISHED }),
  )
}
