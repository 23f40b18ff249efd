import { z } from 'zod';
import { params } from "./request.js";
import * as rules from "./request-rules.js";
/**
 * The contract's rules for an apply ("Create payout order"). payoutd asks for more before it takes a payout in
 * (`payout/validate.ts`).
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
});
/** The parameters of an apply, unsigned (gateway contract, "Create payout order"). */
export function applyParams(order, mchId, rule) {
    const { vpa, ifsc } = order;
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
    ]);
}
/** What of a payout must not be told on, wherever the gateway repeats it. */
export const bankDetails = (order) => [order.accountNo, order.accountName, order.ifsc, order.vpa, order.phoneNumber, order.payerEmail].filter((value) => typeof value === 'string');
