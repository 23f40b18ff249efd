import type { EvidenceSource } from '../evidence.ts'
import type { Instant } from '../instant.ts'
import type { Paise } from '../money.ts'
import { ORDER_SHOWN } from '../payout/order-shown.ts'
import type { Payout } from '../payout/payout.ts'
import { NOT_FOUND } from '../payout/record-query-answer.ts'
import { type End, isEnd, type State } from '../payout/states.ts'

/** A transition or the end of a payout, from a message of payout.events or payout.results. */
export type PublishedMessage = {
  version: number
  /** Null in a result, and in the first transition. */
  fromState: State | null
  state: State
  reason: string | null
  evidence: EvidenceSource
  /** Null for a rejected command. */
  orderNo: string | null
  amount: Paise
  currency: string
  /** These three only in a result. */
  agentpayOrderId: string | null
  fee: Paise | null
  utr: string | null
  /** When it happened. */
  at: Instant
  /** Whether it comes from payout.results; else from payout.events. */
  isResult: boolean
}

/** A published transition, as schemas/PayoutEvent.avsc describes it. */
export type PublishedTransition = Pick<
  PublishedMessage,
  'version' | 'fromState' | 'reason' | 'evidence' | 'at'
> & { toState: State }

/**
 * A published end: an event, a result or both. payoutd publishes the two side by side, and either may be lost alone. Only a
 * result has all the fields.
 */
export type PublishedEnd = Omit<PublishedMessage, 'fromState' | 'state' | 'isResult'> & {
  status: End
  asEvent: boolean
  asResult: boolean
}

/** What was published about a payout, as far as a restored ledger may lack it. */
export type Published = {
  /** From the ledger's version on, and below it what its own story lacks; in any order, with repeats. */
  transitions: PublishedTransition[]
  /** The times of the submissions. */
  submitted: Set<Instant>
  /** Each once, in the order of publication. */
  ends: PublishedEnd[]
  /** The highest published version. */
  highest: number
}

export const nothingPublished = (): Published => ({
  transitions: [],
  submitted: new Set(),
  ends: [],
  highest: 0,
})

/** Adds a published message. `version`: the ledger's version of the payout. */
export function addPublished(published: Published, message: PublishedMessage, version = 0): void {
  published.highest = Math.max(published.highest, message.version)
  if (!message.isResult && message.version >= version) published.transitions.push(transitionIn(message))
  if (isSubmit(message.fromState, message.state)) published.submitted.add(message.at)
  const end = endIn(message)
  if (!end) return
  const at = published.ends.findIndex((each) => isSame(transitionTo(each), transitionTo(end)))
  if (at < 0) published.ends.push(end)
  else published.ends[at] = bothOf(published.ends[at] as PublishedEnd, end)
}

export const transitionIn = (message: PublishedMessage): PublishedTransition => {
  const { version, fromState, state, reason, evidence, at } = message
  return { version, fromState, toState: state, reason, evidence, at }
}

/** The end in a message; null: it has none. */
export function endIn({ fromState, state, isResult, ...rest }: PublishedMessage): PublishedEnd | null {
  return isEnd(state) ? { ...rest, status: state, asEvent: !isResult, asResult: isResult } : null
}

/** Prefers the result to the event, because it has more fields. */
function bothOf(known: PublishedEnd, end: PublishedEnd): PublishedEnd {
  const fuller = known.asResult ? known : end
  return { ...fuller, asEvent: known.asEvent || end.asEvent, asResult: known.asResult || end.asResult }
}

/** All published transitions, each once, in the order of publication, including an end that only a result shows. */
export function transitionsOf({ transitions, ends }: Published): PublishedTransition[] {
  const each: PublishedTransition[] = []
  for (const one of transitions) if (!each.some((known) => isSame(known, one))) each.push(one)
  for (const end of ends)
    if (!each.some((known) => isSame(known, transitionTo(end)))) each.push(transitionTo(end))
  return each
}

const transitionTo = ({ status, version, reason, evidence, at }: PublishedEnd): PublishedTransition => ({
  ...{ version, fromState: null, toState: status, reason, evidence, at },
})

/** Another state was published under its own version. The history of an old payout may no longer show that. */
export const isOtherwise = (
  { state, version }: Pick<Payout, 'state' | 'version'>,
  transition: PublishedTransition,
): boolean => transition.version === version && transition.toState !== state

/** The same transition, as an event, as a result, or published again. Another ledger did the same at another time. */
export const isSame = (a: OwnTransition, b: OwnTransition): boolean =>
  a.version === b.version && a.toState === b.toState && a.at === b.at

/**
 * The published ends that a payout's own story lacks, latest first. `passed`: published transitions that it lacks because the
 * ledger has other ones under those versions.
 */
export const lackedEnds = (
  payout: Pick<Payout, 'version'>,
  { ends }: Published,
  passed: readonly PublishedTransition[],
): PublishedEnd[] =>
  ends
    .filter((end) => end.version > payout.version || passed.some((each) => isSame(each, transitionTo(end))))
    .sort((a, b) => b.version - a.version)

/** A transition in the ledger's own history. */
export type OwnTransition = Pick<PublishedTransition, 'version' | 'fromState' | 'toState' | 'at'>

/** What the ledger itself has of a payout. `submitted`: when its attempts were, those that a recovery read back among them. */
export type OwnStory = { transitions: readonly OwnTransition[]; submitted: readonly Instant[] }

export const NOTHING_OWN: OwnStory = { transitions: [], submitted: [] }

/**
 * What ledgers that were set back one after another published and the ledger lacks, each in the order of time. What does not go on
 * from the transition before it, under the next version or to an end, is of the next ledger. The ledger's own transitions stand
 * between them.
 */
export function storiesOf(
  lacked: readonly PublishedTransition[],
  { transitions }: Pick<OwnStory, 'transitions'>,
): PublishedTransition[][] {
  const each = [
    ...transitions.map((own) => ({ ...own, lacked: null })),
    ...lacked.map((one) => ({ ...one, lacked: one })),
  ].sort((a, b) => a.at - b.at || a.version - b.version)
  const stories: PublishedTransition[][] = []
  each.forEach((one, place) => {
    if (!goesOn(each[place - 1], one)) stories.push([])
    if (one.lacked) stories.at(-1)?.push(one.lacked)
  })
  return stories.filter(({ length }) => length > 0)
}

/** Events before an end may be missing, because results do not wait for them. */
function goesOn(before: OwnTransition | undefined, { version, fromState, toState }: OwnTransition): boolean {
  if (before === undefined || version <= before.version) return false
  const isNext = version === before.version + 1 && fromState === before.toState
  return isNext || (isEnd(toState) && !isEnd(before.toState))
}

/** The states that only an attempt leads to. */
const SENT: readonly (State | null)[] = ['submitting', 'unknown', 'processing']

/** An attempt had begun by then. */
export const isOfAttempt = ({ fromState, toState }: PublishedTransition): boolean =>
  SENT.includes(fromState) || SENT.includes(toState)

/** Republishing under another version is not another attempt. */
const isSubmit = (from: State | null, to: State): boolean => to === 'submitting' && from !== 'submitting'

/** The times of the submissions. */
export const submitsAmong = (transitions: readonly PublishedTransition[]): Instant[] => [
  ...new Set(transitions.filter((each) => isSubmit(each.fromState, each.toState)).map(({ at }) => at)),
]

/** The gateway had shown the order by then: nothing else leads there. */
export const showsOrder = ({ toState, reason }: PublishedTransition): boolean =>
  toState === 'processing' ||
  (toState === 'unknown' && reason === 'duplicate') ||
  (toState === 'review' && (reason === ORDER_SHOWN || reason === NOT_FOUND))
