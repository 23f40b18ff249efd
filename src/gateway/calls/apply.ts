import { z } from 'zod'
import type { Paise } from '../../domain/money.ts'
import type { Dialect } from '../dialect/dialect.ts'
import { type Params, params } from '../wire/request.ts'
import * as rules from '../wire/request-rules.ts'

/** A payout as the client sends it. Exactly one of `ifsc` and `vpa` is set; `amount` in paise. */
export type ApplyOrder = {
  mchOrderNo: string
  amount: Paise
  currency: string
  accountName: string | null
  accountNo: string
  ifsc: string | null
  vpa: string | null
  phoneNumber: string | null
  payerEmail: string | null
  remark: string | null
  /** Contains the merchant in its path, because the payout callback does not name it; has no query string. */
  notifyUrl: string
}

/**
 * The contract's rules for an apply ("Create payout order"). payoutd checks more before it accepts a payout
 * (`domain/commands/validate.ts`).
 */
export const applySchema = rules.oneOf('ifsc', 'vpa', {
  mchOrderNo: rules.number30,
  amount: rules.amount,
  currency: rules.given,
  accountName: rules.accountName.nullable(),
  accountNo: rules.accountNo,
  ifsc: rules.ifsc.nullable(),
  vpa: rules.vpa.nullable(),
  phoneNumber: rules.phoneNumber.nullable(),
  payerEmail: rules.payerEmail.nullable(),
  remark: z.string().nullable(),
  notifyUrl: rules.notifyUrl,
})

/** The parameters of an apply, unsigned (gateway contract, "Create payout order"). */
export function applyParams(order: ApplyOrder, mchId: string, rule: Dialect['vpaAccountNo']): Params {
  const { vpa, ifsc } = order
  return params([
    ['mchId', mchId],
    ['mchOrderNo', order.mchOrderNo],
    ['amount', order.amount],
    ['currency', order.currency],
    ['phoneNumber', order.phoneNumber],
    ['payerEmail', order.payerEmail],
    ['accountName', order.accountName],
    ['accountNo', rule === 'vpa' && vpa !== null ? vpa : order.accountNo],
    ['accountBankCode', 'BANK'],
    ['notifyUrl', order.notifyUrl],
    ['extra', JSON.stringify({ value: vpa ?? ifsc })],
    ['remark', order.remark],
  ])
}

/** The values of a payout that must not be kept or shown, wherever the gateway repeats them. */
export const bankDetails = (order: ApplyOrder): string[] =>
  [order.accountNo, order.accountName, order.ifsc, order.vpa, order.phoneNumber, order.payerEmail].filter(
    (value) => typeof value === 'string',
  )
