import type { Paise } from '../../src/domain/money.ts'

/** One delivery of a PayoutResult (schemas/PayoutResult.avsc). `eventId`: its ce_id. */
export type PublishedResult = {
  eventId: string
  merchantId: string
  payoutId: string
  /** PAID, FAILED, REJECTED or CANCELLED. */
  status: string
  amount: Paise
  fee: Paise | null
  utr: string | null
  version: number
  evidence: string
  errors: { message: string }[]
}

/** One delivery of a PayoutEvent (schemas/PayoutEvent.avsc). */
export type PublishedEvent = {
  eventId: string
  merchantId: string
  payoutId: string
  version: number
  /** A state in capitals. */
  toState: string
  mchOrderNo: string | null
  reason: string | null
  evidence: string
}

/** One delivery of a PayoutAnomaly (schemas/PayoutAnomaly.avsc). */
export type PublishedAnomaly = {
  eventId: string
  merchantId: string
  payoutId: string | null
  mchOrderNo: string | null
  kind: string
  detail: string
}

/** One delivery of a PayinResult (schemas/PayinResult.avsc). */
export type PublishedPayinResult = {
  eventId: string
  payinId: string
  /** PAID, FAILED or EXPIRED. */
  status: string
  version: number
}

/** Everything that payoutd published, repeats included, in reading order. */
export type PublishedRecords = {
  readonly results: readonly PublishedResult[]
  readonly events: readonly PublishedEvent[]
  readonly anomalies: readonly PublishedAnomaly[]
  readonly payins: readonly PublishedPayinResult[]
}
