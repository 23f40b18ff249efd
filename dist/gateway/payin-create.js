import { z } from 'zod';
import { params } from "./request.js";
import * as rules from "./request-rules.js";
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
});
/** The parameters of a payin, unsigned (gateway contract, "Create payin order"). */
export const payinCreateParams = (order, mchId) => params([
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
]);
/** What of the payer must not be told on, wherever the gateway repeats it. */
export const payerDetails = (order) => [order.phoneNumber, order.payerEmail, order.accountName].filter((value) => typeof value === 'string');
