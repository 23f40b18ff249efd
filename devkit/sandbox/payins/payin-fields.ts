import { rupees } from '../rupees.ts'
import { platformNo } from '../state/sequence.ts'
import type { Nested, Signable } from '../wire/sign.ts'
import { FAILED, PAID, type Payin } from './payin.ts'

/** The contract shows no set of values for either: every payin of the sandbox is a UPI payment. */
const PRODUCT_ID = 'UPI'
const CHANNEL_CODE = 'UPI'
/** Why a callback is sent (the contract shows no values): by the schedule, or because a query asked for it. */
const BACK_TYPE = { scheduled: '1', asked: '2' } as const
const PAYER_VPA = 'payer@sandbox'

export const payOrderId = (payin: Pick<Payin, 'id' | 'createdAt'>): string =>
  platformNo('PI', payin.id, payin.createdAt)

/** The UPI address that collects for this order alone. */
const upi = (payin: Payin): string => `${payOrderId(payin).toLowerCase()}@sandbox`

/** The deep link that a UPI application opens, and the text of the QR code. `am` is in rupees. */
export const upiLink = (payin: Payin, mchId: string): string =>
  `upi://pay?${[
    `pa=${upi(payin)}`,
    `pn=${encodeURIComponent(`Merchant ${mchId}`)}`,
    `tr=${payOrderId(payin)}`,
    `am=${rupees(payin.amount)}`,
    'cu=INR',
  ].join('&')}`

/** The answer of neworder for an accepted payin (gateway contract, "Create payin order"). */
export const createdFields = (payin: Payin, mchId: string, payUrl: string): Signable => ({
  retCode: 'SUCCESS',
  retMsg: 'created',
  payOrderId: payOrderId(payin),
  payParams: payParams(payin, mchId, payUrl),
})

/** Sorted by name, as some of the family write an object before they sign it. */
function payParams(payin: Payin, mchId: string, payUrl: string): Nested {
  const link = upiLink(payin, mchId)
  return { payMethod: 'urlJump', payUrl, qrString: link, upi: upi(payin), url: link }
}

/** A query's answer about the payin (gateway contract, "Query payin order"). */
export const payinFields = (payin: Payin): Signable => ({
  retCode: 'SUCCESS',
  retMsg: null,
  status: payin.status,
  productId: PRODUCT_ID,
  amount: payin.amount,
  channelPayNo: payin.utr,
  currency: 'INR',
  mchOrderNo: payin.mchOrderNo,
  payOrderId: payOrderId(payin),
  voucherMap: voucherMap(payin),
  errorMessage: payin.errorMessage ?? '',
  paySuccTime: payin.paidAt,
  notifyStatus: payin.notifyStatus,
})

const voucherMap = ({ utr }: Payin): Nested => (utr === null ? {} : { payerVpa: PAYER_VPA, utr })

/** The answer to a UTR recovery (gateway contract, "UTR recovery for a payin order"). */
export const recoveredFields = (payin: Payin): Signable => ({
  retCode: 'SUCCESS',
  retMsg: 'submitted',
  mchOrderNo: payin.mchOrderNo,
  agentpayOrderId: payOrderId(payin),
  errorMessage: null,
  extra: null,
})

/** A callback about an ended payin (gateway contract, "Payin callback"), without its signature. */
export const noticeFields = (
  payin: Payin,
  mchId: string,
  backType: keyof typeof BACK_TYPE,
): Record<string, string> => ({
  payOrderId: payOrderId(payin),
  paySuccTime: payin.status === PAID ? String(payin.paidAt) : '',
  amount: String(payin.amount),
  mchId,
  mchOrderNo: payin.mchOrderNo,
  channelPayNo: payin.utr ?? '',
  backType: BACK_TYPE[backType],
  channelCode: CHANNEL_CODE,
  status: String(payin.status),
  ...(payin.status === FAILED ? { errorMessage: payin.errorMessage ?? '' } : {}),
})
