import { z } from 'zod'
import type { Paise } from '../../domain/money.ts'
import { type Params, params } from '../wire/request.ts'
import * as rules from '../wire/request-rules.ts'

/** A collection as the client asks for it; `amount` in paise. */
export type PayinOrder = {
  mchOrderNo: string
  amount: Paise
  currency: string
  phoneNumber: string | null
  payerEmail: string | null
  accountName: string | null
  /** Without a query string. */
  notifyUrl: string
  /** Where the payer's browser goes afterwards. */
  returnUrl: string | null
  remark: string | null
}

/** The contract's rules for a payin ("Create payin order"). */
export const payinCreateSchema = z.object({
  mchOrderNo: rules.number30,
  amount: rules.amount,
  currency: rules.given,
  phoneNumber: rules.phoneNumber.nullable(),
  payerEmail: rules.payerEmail.nullable(),
  accountName: rules.accountName.nullable(),
  notifyUrl: rules.notifyUrl,
  returnUrl: rules.webAddress.nullable(),
  remark: z.string().nullable(),
})

/** The parameters of a payin, unsigned (gateway contract, "Create payin order"). */
export const payinCreateParams = (order: PayinOrder, mchId: string): Params =>
  params([
    ['mchId', mchId],
    ['mchOrderNo', order.mchOrderNo],
    ['amount', order.amount],
    ['currency', order.currency],
    ['phoneNumber', order.phoneNumber],
    ['payerEmail', order.payerEmail],
    ['accountName', order.accountName],
    ['notifyUrl', order.notifyUrl],
    ['returnUrl', order.returnUrl],
    ['remark', order.remark],
  ])

/** The payer's values that must not be kept or shown, wherever the gateway repeats them. */
export const payerDetails = (order: PayinOrder): string[] =>
  [order.phoneNumber, order.payerEmail, order.accountName].filter((value) => typeof value === 'string')
