import type { EvidenceSource, Exchange } from '../evidence.ts'
import type { Instant } from '../instant.ts'
import type { Paise } from '../money.ts'
import type { Anomaly } from '../payout/payout.ts'
import type { PayParams } from './gateway-answers.ts'
import type { PayinState } from './states.ts'

/** One collection, as every decision looks at it. */
export type Payin = {
  merchantId: string
  /** The order number at the gateway too: there is one order for each payin. */
  payinId: string
  /** The gateway account where it was asked for; null: that was not kept then. */
  accountId: string | null
  amount: Paise
  currency: string
  state: PayinState
  /** Why it is in this state, in a stable word (`timeout`, `lease-ended`, …) or the gateway's own text. */
  reason: string | null
  /** Counts its transitions from 1, without gaps. */
  version: number
  /** The gateway showed that it has or had its order: that it is not found later proves nothing. */
  orderShown: boolean
  payOrderId: string | null
  /** Null until the gateway's answer to the creation is known; for ever, if that answer was lost. */
  checkout: PayParams | null
  utr: string | null
  /** When the payer paid, as the gateway tells it. */
  paidAt: Instant | null
  /** When the result of the creation was first not known, or the order first not found; null while it is there. */
  unknownSince: Instant | null
  /** How often the gateway was asked since the last progress. */
  queries: number
  /** How many of these answers were "not found" in a row, and counted. */
  notFoundCount: number
  /** Asked about anew, after a UTR recovery or a sign of a payment, until that was as often as the query policy has waits. */
  askedAnew: boolean
  /** When the gateway was last asked about it; null: never. */
  askedAt: Instant | null
  /** When somebody must look at it again: the end of the lease, or the next query. */
  dueAt: Instant | null
  createdAt: Instant
  /** From then on a payin that nobody has paid is no longer asked about. */
  expiresAt: Instant
  /** As it came with the request; results carry it on. */
  traceparent: string | null
}

/** What one decision does to one payin. */
export type PayinChange = {
  before: Payin
  /** Equal to `before` but for what changed; `version` is higher by one exactly if the state was left. */
  after: Payin
  source: EvidenceSource
  /** Kept in the history, also where the evidence moved nothing. Null: nothing was said worth keeping. */
  exchange: Exchange | null
}

/** Both: the anomaly is the answer to a question, after which the payin waits for the next one. */
export type PayinDecision =
  | { change: PayinChange }
  | { anomaly: Anomaly }
  | { anomaly: Anomaly; change: PayinChange }
  | { nothing: true }
