import type { Fault } from './fault.ts'
import type { Paise } from './money.ts'

/**
 * Who or what says so. OPERATOR is a named person with a reason; CREATE and RECOVERY are the gateway's answers to
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

/** A rule that a request breaks, so that it was not sent. Neither part repeats a value. */
export type RequestFault = Omit<Fault, 'found'>

/**
 * What was said on the wire, made safe to keep for ever: bank details masked, the signature and the key
 * left out. `at` is when it was heard.
 */
export type Exchange = {
  request?: Record<string, string>
  response?: Record<string, unknown>
  httpStatus?: number
  tookMs?: number
  note?: string
  faults?: readonly RequestFault[]
}

/** In the place of what the database refuses to keep. */
export const UNKEPT: Exchange = { note: 'what was said could not be stored' }

/**
 * Why a signed callback settles nothing, whatever it says: its text has another reading, or it carries what nobody signed.
 */
export type Doubt = 'of-a-request' | 'several-readings' | 'unsigned-parameters'

/** A signed statement of the gateway about one order, from a callback or a query. */
export type OrderReport = {
  mchOrderNo: string
  agentpayOrderId: string | null
  status: OrderStatus
  /** What stands there of a status that is unlisted, masked and cut. */
  unlisted?: string
  /** Null where the gateway wrote something that is not a whole number of paise. */
  amount: Paise | null
  fee: Paise | null
  utr: string | null
  errorMessage: string | null
  /** Fields that are null because what stands there cannot be read, with that: masked and cut. */
  unreadable?: readonly string[]
  /** Of a callback alone. */
  doubt?: Doubt
  exchange: Exchange
}
