import type { EvidenceSource, Exchange } from '../evidence.ts'
import type { Instant } from '../instant.ts'
import type { Paise } from '../money.ts'
import type { Anomaly } from '../payout/payout.ts'
import type { PayParams } from './gateway-answers.ts'
import type { PayinState } from './states.ts'

/** One collection, with the fields that decisions need. */
export type Payin = {
  merchantId: string
  /** Also the order number at the gateway: each payin has one order. */
  payinId: string
  /** The gateway account that payoutd asked to create it; null: payoutd did not store the account then. */
  accountId: string | null
  amount: Paise
  currency: string
  state: PayinState
  /** Why it is in this state, in a stable word (`timeout`, `lease-ended`, …) or the gateway's own text. */
  reason: string | null
  /** Counts its transitions from 1, without gaps. */
  version: number
  /** The gateway showed that it has or had the order, so a later "not found" proves nothing. */
  orderShown: boolean
  payOrderId: string | null
  /** Null until payoutd has the gateway's answer to the creation; for ever, if that answer was lost. */
  checkout: PayParams | null
  utr: string | null
  /** When the payer paid, as the gateway reports it. */
  paidAt: Instant | null
  /** When the result of the creation became unknown, or the first query did not find the order; null while the gateway has it. */
  unknownSince: Instant | null
  /** How often payoutd asked the gateway since the last progress. */
  queries: number
  /** How many of these answers in a row were a "not found" that counts. */
  notFoundCount: number
  /** After a UTR recovery or a sign of a payment, payoutd asks again, once for each wait of the query policy. True until then. */
  askedAnew: boolean
  /** When payoutd last asked the gateway about it; null: never. */
  askedAt: Instant | null
  /** When payoutd must look at it again: the end of the lease, or the next query. */
  dueAt: Instant | null
  createdAt: Instant
  /** From then on payoutd no longer asks about it if nobody has paid. */
  expiresAt: Instant
  /** From the request; results carry it on. */
  traceparent: string | null
}

/** What one decision does to one payin. */
export type PayinChange = {
  before: Payin
  /** Equals `before` except for the changes. `version` is one higher exactly if the state changed. */
  after: Payin
  source: EvidenceSource
  /** Kept in the history, even if the evidence moved nothing. Null: there is nothing to keep. */
  exchange: Exchange | null
}

/** Both: the anomaly is the answer to a query, after which the payin waits for the next one. */
export type PayinDecision =
  | { change: PayinChange }
  | { anomaly: Anomaly }
  | { anomaly: Anomaly; change: PayinChange }
  | { nothing: true }
