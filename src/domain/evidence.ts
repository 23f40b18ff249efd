import type { Fault } from './fault.ts'
import type { Paise } from './money.ts'

/**
 * Where the evidence comes from. OPERATOR is a named person with a reason; CREATE and RECOVERY are the gateway's answers to
 * the creation of a payin and to a UTR recovery.
 */
export type EvidenceSource =
  | 'CALLBACK'
  | 'QUERY'
  | 'APPLY'
  | 'VALIDATION'
  | 'OPERATOR'
  | 'CLOCK'
  | 'COMMAND'
  | 'CREATE'
  | 'RECOVERY'

/** The status of a payout order in the gateway contract, 0 to 3 in this order; anything else is unlisted. */
export type OrderStatus = 'pending' | 'processing' | 'success' | 'failed' | 'unlisted'

/** A rule that a request breaks, so payoutd did not send it. Neither part repeats a value. */
export type RequestFault = Omit<Fault, 'found'>

/**
 * What went over the wire, made safe to keep for ever: bank details masked, the signature and the key left out. `at` is when
 * payoutd received it.
 */
export type Exchange = {
  request?: Record<string, string>
  response?: Record<string, unknown>
  httpStatus?: number
  tookMs?: number
  note?: string
  faults?: readonly RequestFault[]
}

/** Stands in for an exchange that the database refuses to store. */
export const UNKEPT: Exchange = { note: 'payoutd could not store this report' }

/**
 * Why payoutd must not act on a signed callback: it carries fields that only requests carry, its signed text has another
 * reading, or it carries parameters that the signature does not cover.
 */
export type Doubt = 'of-a-request' | 'several-readings' | 'unsigned-parameters'

/** A signed report of the gateway about one order, from a callback or a query. */
export type OrderReport = {
  mchOrderNo: string
  agentpayOrderId: string | null
  status: OrderStatus
  /** The value that stands in place of a listed status, masked and cut. */
  unlisted?: string
  /** Null if the gateway wrote something that is not a whole number of paise. */
  amount: Paise | null
  fee: Paise | null
  utr: string | null
  errorMessage: string | null
  /** Fields that are null because their value is unreadable, each with that value, masked and cut. */
  unreadable?: readonly string[]
  /** Only in callbacks. */
  doubt?: Doubt
  exchange: Exchange
}
