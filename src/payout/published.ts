import type { EvidenceSource } from './evidence.ts'
import type { Instant } from './instant.ts'
import type { Paise } from './money.ts'
import { type End, isEnd, type State } from './states.ts'

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
  /** Each version and state once. */
  ends: PublishedEnd[]
  /** The latest of them. */
  end: PublishedEnd | null
  /** The version above which nothing was published. */
  highest: number
}

export const nothingPublished = (): Published => ({
  transitions: [],
  submitted: new Set(),
  ends: [],
  end: null,
  highest: 0,
})

/** Adds a message to what is known to be published. `version`: that which the ledger has of the payout. */
export function addPublished(published: Published, message: PublishedMessage, version = 0): void {
  published.highest = Math.max(published.highest, message.version)
  if (!message.isResult && message.version >= version) published.transitions.push(transitionIn(message))
  if (message.state === 'submitting') published.submitted.add(message.version)
  const end = endIn(message)
  if (!end) return
  const at = published.ends.findIndex((each) => each.version === end.version && each.status === end.status)
  if (at < 0) published.ends.push(end)
  else published.ends[at] = laterEnd(published.ends[at] as PublishedEnd, end)
  published.end = latestOf(published.ends)
}

export const transitionIn = (message: PublishedMessage): PublishedTransition => {
  const { version, fromState, state, reason, evidence, at } = message
  return { version, fromState, toState: state, reason, evidence, at }
}

/** The end that a message tells of; null: none. */
export function endIn({ fromState, state, isResult, ...told }: PublishedMessage): PublishedEnd | null {
  return isEnd(state) ? { ...told, status: state, asEvent: !isResult, asResult: isResult } : null
}

export const latestOf = (ends: readonly PublishedEnd[]): PublishedEnd | null =>
  ends.reduce<PublishedEnd | null>(laterEnd, null)

/**
 * The later one. Of the same version the result, which tells more than the event; of two ends that were told under one event id,
 * the first.
 */
export function laterEnd(known: PublishedEnd | null, end: PublishedEnd): PublishedEnd {
  if (known === null || end.version > known.version) return end
  if (end.version < known.version || end.status !== known.status) return known
  const fuller = known.asResult ? known : end
  return { ...fuller, asEvent: known.asEvent || end.asEvent, asResult: known.asResult || end.asResult }
}
