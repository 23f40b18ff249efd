import type { EvidenceSource } from '../evidence.ts'
import type { Instant } from '../instant.ts'
import type { Paise } from '../money.ts'
import type { Payout } from '../payout/payout.ts'
import { type End, isEnd, type State } from '../payout/states.ts'
import { isSameUtr } from '../utr.ts'

/** A transition of a payout, or its end, as a message of payout.events or payout.results tells it. */
export type PublishedMessage = {
  version: number
  /** Null in a result, and of the first transition. */
  fromState: State | null
  state: State
  reason: string | null
  evidence: EvidenceSource
  /** Null of a command that was rejected. */
  orderNo: string | null
  amount: Paise
  currency: string
  /** These three in a result alone. */
  agentpayOrderId: string | null
  fee: Paise | null
  utr: string | null
  /** When it happened. */
  at: Instant
  /** In payout.results, else in payout.events. */
  isResult: boolean
}

/** A transition that was published, as schemas/PayoutEvent.avsc tells it. */
export type PublishedTransition = Pick<
  PublishedMessage,
  'version' | 'fromState' | 'reason' | 'evidence' | 'at'
> & { toState: State }

/**
 * An end that was published, as an event, as a result or as both: the two are published side by side, and either may be
 * lost alone. All of it is known where it was published as a result.
 */
export type PublishedEnd = Omit<PublishedMessage, 'fromState' | 'state' | 'isResult'> & {
  status: End
  asEvent: boolean
  asResult: boolean
}

/** What was published of a payout, as far as it tells something that a restored ledger may lack. */
export type Published = {
  /** From the version on that the ledger has, and of those below it what its own story lacks; any order, and repeats. */
  transitions: PublishedTransition[]
  /** The versions by which it was sent. */
  submitted: Set<number>
  /** Each version and state once, in the order in which they were told. */
  ends: PublishedEnd[]
  /** The version above which nothing was published. */
  highest: number
}

export const nothingPublished = (): Published => ({
  transitions: [],
  submitted: new Set(),
  ends: [],
  highest: 0,
})

/** Adds a message to what is known to be published. `version`: that which the ledger has of the payout. */
export function addPublished(published: Published, message: PublishedMessage, version = 0): void {
  published.highest = Math.max(published.highest, message.version)
  if (!message.isResult && message.version >= version) published.transitions.push(transitionIn(message))
  if (isSubmit(message.fromState, message.state)) published.submitted.add(message.version)
  const end = endIn(message)
  if (!end) return
  const at = published.ends.findIndex((each) => each.version === end.version && each.status === end.status)
  if (at < 0) published.ends.push(end)
  else published.ends[at] = bothOf(published.ends[at] as PublishedEnd, end)
}

export const transitionIn = (message: PublishedMessage): PublishedTransition => {
  const { version, fromState, state, reason, evidence, at } = message
  return { version, fromState, toState: state, reason, evidence, at }
}

/** The end that a message tells of; null: none. */
export function endIn({ fromState, state, isResult, ...told }: PublishedMessage): PublishedEnd | null {
  return isEnd(state) ? { ...told, status: state, asEvent: !isResult, asResult: isResult } : null
}

/** Of an event and a result the result, which tells more. */
function bothOf(known: PublishedEnd, end: PublishedEnd): PublishedEnd {
  const fuller = known.asResult ? known : end
  return { ...fuller, asEvent: known.asEvent || end.asEvent, asResult: known.asResult || end.asResult }
}

/** The latest; of two that were told under one event id, the first. */
export const latestOf = ({ ends }: Pick<Published, 'ends'>): PublishedEnd | null =>
  ends.toSorted((a, b) => b.version - a.version)[0] ?? null

/** All that was published, each once, in the order in which it was told: also an end of which there is a result alone. */
export function transitionsOf({ transitions, ends }: Published): PublishedTransition[] {
  const each: PublishedTransition[] = []
  for (const one of transitions) if (!each.some((known) => isSame(known, one))) each.push(one)
  for (const { status, version, reason, evidence, at } of ends) {
    const told = { version, fromState: null, toState: status, reason, evidence, at }
    if (!each.some((known) => isSame(known, told))) each.push(told)
  }
  return each
}

const isSame = (a: PublishedTransition, b: PublishedTransition): boolean =>
  a.version === b.version && a.toState === b.toState && (isEnd(a.toState) || a.reason === b.reason)

/**
 * The published ends that a payout's own story lacks, the latest first; of the same payment another UTR may have been told.
 * `passed`: what it lacks under versions that it has come to otherwise.
 */
export const lackedEnds = (
  { state, version, utr }: Pick<Payout, 'state' | 'version' | 'utr'>,
  { ends }: Published,
  passed: readonly PublishedTransition[],
): PublishedEnd[] =>
  ends
    .filter(
      (end) =>
        end.version > version ||
        (end.version === version && end.status === state && !isSameUtr(end.utr, utr)) ||
        passed.some((each) => each.version === end.version && each.toState === end.status),
    )
    .sort((a, b) => b.version - a.version)

/** The states that only an attempt leads to. */
export const SENT: readonly (State | null)[] = ['submitting', 'unknown', 'processing']

/** What is told once more under another version is no other attempt. */
const isSubmit = (from: State | null, to: State): boolean => to === 'submitting' && from !== 'submitting'

/** The versions by which it was sent. */
export const submitsAmong = (transitions: readonly PublishedTransition[]): number[] => [
  ...new Set(
    transitions.filter((each) => isSubmit(each.fromState, each.toState)).map(({ version }) => version),
  ),
]
