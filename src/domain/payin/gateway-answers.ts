import type { Doubt, Exchange } from '../evidence.ts'
import type { NotSentReason, UnknownReason } from '../gateway-answers.ts'
import type { Instant } from '../instant.ts'
import type { Paise } from '../money.ts'

/**
 * What the payer needs, each value as it came (gateway contract, "Payment parameters object"). `url` is the
 * deep link. At least one of `qrString` and `url` is promised.
 */
export type PayParams = {
  payMethod: string | null
  payUrl: string | null
  qrString: string | null
  url: string | null
  upi: string | null
}

/**
 * A signed statement of the gateway about one payin order, from a query or a callback. Null is what it left
 * out, or wrote in a way that cannot be read.
 */
export type PayinReport = {
  mchOrderNo: string
  payOrderId: string | null
  /** Gateway contract, "Payin order status": 2 is paid, 3 failed. Nothing else ends an order. */
  status: 'pending' | 'paid' | 'failed' | 'unlisted'
  /** What stands there instead of a status, where it is unlisted. */
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
  /** Fields that are null because what stands there cannot be read, each by its name and with that: masked and cut. */
  unreadable?: readonly string[]
  /** Of a callback alone. */
  doubt?: Doubt
  exchange: Exchange
}

/** What a payin callback tells besides (gateway contract, "Payin callback"); it has no currency and no voucher. */
export type PayinCallback = PayinReport & {
  mchId: string | null
  backType: string | null
  channelCode: string | null
}

/** What the creation of a payin came to. An accepted one is created, not paid. */
export type PayinCreateAnswer =
  | { kind: 'accepted'; payOrderId: string; payParams: PayParams; exchange: Exchange }
  | { kind: 'refused'; code: string; message: string; exchange: Exchange }
  | { kind: 'retry-later'; code: string; message: string; exchange: Exchange }
  /** The gateway has this order number already. */
  | { kind: 'duplicate'; code: string; exchange: Exchange }
  /** No byte of the request left. */
  | { kind: 'not-sent'; reason: NotSentReason; exchange: Exchange }
  | { kind: 'unknown'; reason: UnknownReason; exchange: Exchange }

/** What a payin query came to. */
export type PayinQueryAnswer =
  | { kind: 'known'; report: PayinReport }
  /** Signed, or from a gateway whose dialect says that failures carry no signature. */
  | { kind: 'not-found'; exchange: Exchange }
  /** Asked too fast, or at a bad moment: says nothing about the order. */
  | { kind: 'retry'; code: string; exchange: Exchange }
  /** `other-order`: well signed, but about an order that was not asked about. */
  | { kind: 'unknown'; reason: UnknownReason | 'not-sent' | 'other-order'; exchange: Exchange }

/** What a UTR recovery came to. A submitted one proves no payment: the query or the callback will tell. */
export type PayinRecoverAnswer =
  | { kind: 'submitted'; mchOrderNo: string | null; errorMessage: string | null; exchange: Exchange }
  /** By a code of the dialect: the UTR belongs to another order, for one. */
  | { kind: 'refused'; code: string; message: string; exchange: Exchange }
  /** The gateway does not know the order, or no payment under this UTR. */
  | { kind: 'not-found'; code: string; message: string; exchange: Exchange }
  | { kind: 'retry-later'; code: string; message: string; exchange: Exchange }
  | { kind: 'unknown'; reason: UnknownReason | 'not-sent' | 'other-order'; exchange: Exchange }
