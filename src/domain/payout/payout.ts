import type { EvidenceSource, Exchange } from '../evidence.ts'
import type { Fault } from '../fault.ts'
import type { Instant } from '../instant.ts'
import type { Paise } from '../money.ts'
import type { State } from './states.ts'

/** What every decision looks at: the narrow part of a payout, without bank details. */
export type Payout = {
  merchantId: string
  payoutId: string
  batchId: string | null
  /** Null only for a command that was rejected as it came, which is never sent. */
  orderNo: string | null
  amount: Paise
  currency: string
  state: State
  /** Why it is in this state, in a stable word (`schedule`, `timeout`, `expired`, …) or the gateway's own text. */
  reason: string | null
  /** Counts its transitions from 1, without gaps. 0: nobody was told of it yet. */
  version: number
  /** Attempts made so far; 0: the gateway cannot have it. */
  attempt: number
  /** The gateway account that an attempt was sent to which may be alive; null: there is none. */
  accountId: string | null
  /** An attempt before the latest may be alive: it was sent again without proof that the gateway never has it. */
  doubted: boolean
  /**
   * The gateway said "later" to an attempt, or a person that it has no order of one: nothing is paid for that one, and an
   * order of it may be kept, as failed.
   */
  turnedAway: boolean
  /** A person said that the gateway has no order of the attempts for which it is doubted. */
  absenceConfirmed: boolean
  /** What the gateway said to attempts that were taken for turned away by it: a retCode in each line. Null: nothing. */
  laterCodes: string | null
  /**
   * What the gateway said of a refusal or a failure that may be about one of its attempts, or another order, alone: why it
   * will have failed once it is confirmed that nothing of it is alive. Else null.
   */
  refusal: string | null
  /**
   * It failed without the gateway's own report that its order did: a person, a refusal or absence says so. Any sign of life
   * of it is a contradiction then, and no late news.
   */
  unreported: boolean
  /**
   * Since it ended unpaid, the gateway has said anything but that it failed: that its order is alive, after its own word that it
   * failed; or what an anomaly keeps that nobody has acknowledged (`open`), or somebody has. Null: it has not.
   */
  saidOtherwise: 'alive' | 'open' | 'acknowledged' | null
  /**
   * Who asked to cancel it and why, or what else forbids to send it (again), while it cannot be ended for that. Null: it
   * may be sent.
   */
  cancelRequest: string | null
  /** The gateway showed that it has or had an order of it: that it is not found later proves nothing. */
  orderShown: boolean
  agentpayOrderId: string | null
  fee: Paise | null
  utr: string | null
  deadline: Instant
  /** When the result of the latest attempt was first not known, or the order first not found; else null. */
  unknownSince: Instant | null
  /** How often the gateway was asked since the last progress. */
  queries: number
  /** How many of these answers in a row, that counted, showed nothing of it alive: "not found", or failed in doubt. */
  notFoundCount: number
  /** When the gateway was last asked about it; null: never. */
  askedAt: Instant | null
  /** May be claimed by dispatch now: queued, and not waiting for a back-off. */
  ready: boolean
  /** When somebody must look at it again: lease, next query, back-off, schedule or deadline. */
  dueAt: Instant | null
}

/** What one decision does to one payout. */
export type Change = {
  before: Payout
  /** Equal to `before` but for what changed; `version` is higher by one exactly if the state was left. */
  after: Payout
  source: EvidenceSource
  /** Of one that is rejected. */
  faults?: readonly Fault[]
  /** Kept in the history, also where the evidence moved nothing. Null: nothing was said worth keeping. */
  exchange: Exchange | null
}

/** Evidence that must not change anything: kept whole, published, shown to a person. */
export type Anomaly = {
  merchantId: string
  payoutId: string | null
  orderNo: string | null
  /** `contradiction`, `amount-mismatch`, `unknown-order`, `unlisted-status`, … */
  kind: string
  detail: string
  source: EvidenceSource
  exchange: Exchange | null
  /** Of same-id-other-content, in hex: the keyed hashes of what was taken in, and of what differs from it. */
  fingerprints?: readonly [accepted: string, differing: string]
}

/** Both: the anomaly is the answer to a question, after which the payout waits for the next one; or it takes the payout out of the way, to a person. */
export type Decision =
  | { change: Change }
  | { anomaly: Anomaly }
  | { anomaly: Anomaly; change: Change }
  | { nothing: true }
