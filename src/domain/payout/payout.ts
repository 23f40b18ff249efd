import type { AnomalyKind } from '../anomaly-kinds.ts'
import type { EvidenceSource, Exchange } from '../evidence.ts'
import type { Fault } from '../fault.ts'
import type { Instant } from '../instant.ts'
import type { Paise } from '../money.ts'
import type { State } from './states.ts'

/** The part of a payout that decisions need, without bank details. */
export type Payout = {
  merchantId: string
  payoutId: string
  batchId: string | null
  /** Null only for a command that was rejected on arrival; payoutd never sends it. */
  orderNo: string | null
  amount: Paise
  currency: string
  state: State
  /** Why it is in this state, in a stable word (`schedule`, `timeout`, `expired`, …) or the gateway's own text. */
  reason: string | null
  /** Counts its transitions from 1, without gaps. 0: payoutd has published nothing about it yet. */
  version: number
  /** Attempts made so far; 0: the gateway cannot have it. */
  attempt: number
  /** The gateway account of an attempt that may be alive; null: there is none. */
  accountId: string | null
  /** An attempt before the latest may be alive: payoutd sent it again without proof that the gateway never got that one. */
  doubted: boolean
  /**
   * The gateway answered "later" to an attempt, and queries confirmed it, or a person said that the gateway has no order of one. That
   * attempt is not paid; the gateway may still keep an order of it, as failed.
   */
  turnedAway: boolean
  /** A person said that the gateway has no order of the attempts that raise the doubt. */
  absenceConfirmed: boolean
  /** The retCodes, one on each line, the latest last, of answers that mean that the attempt is not paid. Null: none. */
  unpaidCodes: string | null
  /**
   * The gateway's reason for a refusal or failure that may be about only one attempt or another order. It becomes the
   * payout's reason once payoutd confirms that no order is alive. Else null.
   */
  refusal: string | null
  /**
   * It failed by a person's word, a refusal or absence, without the gateway's own report that its order failed. Any sign of
   * a live order is then a contradiction, not late news.
   */
  unreported: boolean
  /**
   * The gateway has reported something other than failure since the payout ended unpaid. `alive`: the order is alive, after
   * the gateway's own report of failure. `open`: an anomaly that nobody has acknowledged keeps the report. `acknowledged`:
   * somebody has. Null: it has not.
   */
  saidOtherwise: 'alive' | 'open' | 'acknowledged' | null
  /**
   * Who asked to cancel it and why, or another reason not to send it (again), while that reason cannot end it. Null: payoutd
   * may send it.
   */
  cancelRequest: string | null
  /** The gateway showed that it has or had an order of it, so a later "not found" proves nothing. */
  orderShown: boolean
  /**
   * The gateway showed an order of it besides that of the latest attempt, such as an earlier attempt's or one at another account.
   * Until a person says that it has none, only a payment ends the payout: no failure, refusal or absence.
   */
  orderBesides: boolean
  agentpayOrderId: string | null
  fee: Paise | null
  utr: string | null
  deadline: Instant
  /** When the result of the latest attempt became unknown, or the first query did not find the order; else null. */
  unknownSince: Instant | null
  /** How often payoutd asked the gateway since the last progress. */
  queries: number
  /** How many of these answers in a row counted and showed no live order: "not found", or failed in doubt. */
  notFoundCount: number
  /** When payoutd last asked the gateway about it; null: never. */
  askedAt: Instant | null
  /** Dispatch may claim it now: it is queued and waits for no back-off. */
  ready: boolean
  /** When payoutd must look at it again: lease, next query, back-off, schedule or deadline. */
  dueAt: Instant | null
  /**
   * When it last changed, by the database's clock. Null: that clock was ahead then, or is behind now; while an attempt is under way,
   * by more than 30 s. Only submissions must have a time of their own, to be told from those of a lost ledger.
   */
  lastChangeAt: Instant | null
}

/** What one decision does to one payout. */
export type Change = {
  before: Payout
  /** Equals `before` except for the changes. `version` is one higher exactly if the state changed. */
  after: Payout
  source: EvidenceSource
  /** Only for a rejected payout. */
  faults?: readonly Fault[]
  /** Kept in the history, even if the evidence moved nothing. Null: there is nothing to keep. */
  exchange: Exchange | null
}

/** Evidence that must not change anything: payoutd keeps it whole, publishes it and shows it to a person. */
export type Anomaly = {
  merchantId: string
  payoutId: string | null
  orderNo: string | null
  kind: AnomalyKind
  detail: string
  source: EvidenceSource
  exchange: Exchange | null
  /** Only for same-id-other-content: the keyed hashes, in hex, of the accepted content and of the differing one. */
  fingerprints?: readonly [accepted: string, differing: string]
}

/**
 * Both: the anomaly is the answer to a query, after which the payout waits for the next one; or it also hands the payout to
 * a person.
 */
export type Decision =
  | { change: Change }
  | { anomaly: Anomaly }
  | { anomaly: Anomaly; change: Change }
  | { nothing: true }
