import type { Payments } from '../payouts/payments.ts'
import type { Payin } from './payin.ts'
import { payOrderId } from './payin-fields.ts'

/** A payin as a checker and a script see it. Amounts as strings of paise, times in milliseconds. */
export const payinLine = (payin: Payin, payments: Payments) => ({
  mchOrderNo: payin.mchOrderNo,
  payOrderId: payOrderId(payin),
  amount: String(payin.amount),
  fee: String(payin.fee),
  status: payin.status,
  errorMessage: payin.errorMessage,
  utr: payin.utr,
  /** UTRs of payments made on its page that belong to no order. */
  untoldUtrs: payments.untold(payin.id),
  expiresAt: payin.expiresAt,
  paidAt: payin.paidAt,
  callbacksSent: payin.callbacksSent,
  notifyStatus: payin.notifyStatus,
})
