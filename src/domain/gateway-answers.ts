import type { Exchange, OrderReport, OrderStatus } from './evidence.ts'
import type { Paise } from './money.ts'

/** Why no byte of a request left. Stable words: they become the reason of a payout that waits again. */
export type NotSentReason =
  | 'lease-ended'
  | 'lease-check-failed'
  | 'connection-refused'
  | 'dns'
  | 'connect-timeout'
  | 'tls'
  | 'connection-failed'
  | 'client-closed'
  | 'unsafe-value'
  | 'invalid-value'

/** Why the result of a call is unknown. Stable words: they label metrics and history. */
export type UnknownReason =
  | 'timeout'
  | 'connection-lost'
  | 'http-status'
  | 'unparsable'
  | 'unsigned'
  | 'bad-signature'
  | 'unlisted-code'
  | 'no-order-id'
  | 'lease-ended'
  /** The answer names another order than the one asked about. */
  | 'other-order'

/**
 * The result of an apply call. Only `not-sent` proves that no byte of the request left. A refusal and a "later" name no order: they
 * may answer another request, or the same one that a proxy sent twice.
 */
export type ApplyAnswer =
  | { kind: 'not-sent'; reason: string; exchange: Exchange }
  | {
      kind: 'accepted'
      agentpayOrderId: string
      fee: Paise | null
      status: OrderStatus
      /** Set if the fee is unreadable: its text, masked and cut. */
      unreadable?: readonly string[]
      exchange: Exchange
    }
  | { kind: 'refused'; code: string; message: string; exchange: Exchange }
  | { kind: 'retry-later'; code: string; message: string; balanceShort: boolean; exchange: Exchange }
  | { kind: 'duplicate'; code: string; exchange: Exchange }
  | { kind: 'unknown'; reason: UnknownReason; exchange: Exchange }

/** The result of a payout query. */
export type QueryAnswer =
  | { kind: 'found'; report: OrderReport }
  /** Signed, or from a gateway whose dialect says that failures carry no signature. */
  | { kind: 'not-found'; exchange: Exchange }
  | { kind: 'unknown'; reason: UnknownReason | 'not-sent' | 'retry-later'; exchange: Exchange }

/** The result of a balance query. Amounts in paise. */
export type BalanceAnswer =
  | {
      kind: 'balance'
      busNo: string | null
      /** What payouts may use. */
      availableAmount: Paise
      /** All of it; null, as for the others: the gateway did not give it. */
      amount: Paise | null
      frozenAmount: Paise | null
      pendingAmount: Paise | null
      unsettledAmount: Paise | null
    }
  | { kind: 'unknown'; reason: UnknownReason | 'not-sent'; exchange: Exchange }

/** An answer about another order than the one asked about: `orderNo` of the question, null for the balance. */
export type MixedAnswer = { baseUrl: string; orderNo: string | null }
