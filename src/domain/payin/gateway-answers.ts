import type { Doubt, Exchange } from '../evidence.ts'
import type { NotSentReason, UnknownReason } from '../gateway-answers.ts'
import type { Instant } from '../instant.ts'
import type { Paise } from '../money.ts'

/**
 * What the payer needs, each value as it came (gateway contract, "Payment parameters object"). `url` is the deep link. The
 * contract promises at least one of `qrString` and `url`.
 */
export type PayParams = {
  payMethod: string | null
  payUrl: string | null
  qrString: string | null
  url: string | null
  upi: string | null
}

/**
 * A signed report of the gateway about one payin order, from a query or a callback. Null: the gateway left the field out, or
 * its value is unreadable.
 */
export type PayinReport = {
  mchOrderNo: string
  payOrderId: string | null
  /** Gateway contract, "Payin order status": 2 is paid, 3 failed. Nothing else ends an order. */
  status: 'pending' | 'paid' | 'failed' | 'unlisted'
  /** The value that stands in place of a listed status. */
  unlisted?: string
  amount: Paise | null
  currency: string | null
  utr: string | null
  productId: string | null
  /** The JSON text of the object as it came. May hold the payer's details: not for logs. */
  voucherMap: string | null
  paidAt: Instant | null
  errorMessage: string | null
  /** The contract does not show what its values mean. */
  notifyStatus: number | null
  /** Fields that are null because their value is unreadable, each with that value, masked and cut. */
  unreadable?: readonly string[]
  /** Only in callbacks. */
  doubt?: Doubt
  exchange: Exchange
}

/** The extra fields of a payin callback (gateway contract, "Payin callback"); it has no currency and no voucher. */
export type PayinCallback = PayinReport & {
  mchId: string | null
  backType: string | null
  channelCode: string | null
}

/** The result of creating a payin. An accepted one is created, not paid. */
export type PayinCreateAnswer =
  | { kind: 'accepted'; payOrderId: string; payParams: PayParams; exchange: Exchange }
  | { kind: 'refused'; code: string; message: string; exchange: Exchange }
  | { kind: 'retry-later'; code: string; message: string; exchange: Exchange }
  /** The gateway has this order number already. */
  | { kind: 'duplicate'; code: string; exchange: Exchange }
  /** No byte of the request left. */
  | { kind: 'not-sent'; reason: NotSentReason; exchange: Exchange }
  | { kind: 'unknown'; reason: UnknownReason; exchange: Exchange }

/** The result of a payin query. */
export type PayinQueryAnswer =
  | { kind: 'known'; report: PayinReport }
  /** Signed, or from a gateway whose dialect says that failures carry no signature. */
  | { kind: 'not-found'; exchange: Exchange }
  /** Asked too fast, or at a bad moment: the answer says nothing about the order. */
  | { kind: 'retry'; code: string; exchange: Exchange }
  | { kind: 'unknown'; reason: UnknownReason | 'not-sent'; exchange: Exchange }

/** The result of a UTR recovery. A submitted one proves no payment: the query or the callback will. */
export type PayinRecoverAnswer =
  | { kind: 'submitted'; mchOrderNo: string | null; errorMessage: string | null; exchange: Exchange }
  /** A code of the dialect says why, for example that the UTR belongs to another order. */
  | { kind: 'refused'; code: string; message: string; exchange: Exchange }
  /** The gateway does not know the order, or no payment under this UTR. */
  | { kind: 'not-found'; code: string; message: string; exchange: Exchange }
  | { kind: 'retry-later'; code: string; message: string; exchange: Exchange }
  | { kind: 'unknown'; reason: UnknownReason | 'not-sent'; exchange: Exchange }
