import { createHash } from 'node:crypto';
import { maskNumber } from "./mask.js";
import { extraValue } from "./payout-rules.js";
/** Gateway contract, "Payout order status". The sandbox accepts straight into processing. */
export const PROCESSING = 1;
export const SUCCESS = 2;
export const FAILED = 3;
/** A new order, as it is the moment it is taken. `tries` applies came before it and were not taken. */
export function acceptOrder(request, terms, now) {
    const { accountNo, extra, ...rest } = request;
    return {
        ...rest,
        fee: terms.fee,
        accountMasked: maskNumber(accountNo),
        payee: payeeOf(accountNo, extra),
        letters: terms.behaviour.letters,
        becomes: terms.behaviour.becomes === 'paid' ? SUCCESS : FAILED,
        acceptedAt: now,
        settleAt: now + (terms.behaviour.settleMs ?? terms.settleMs),
        applyCalls: terms.tries + 1,
        status: PROCESSING,
        timesPaid: 0,
        letter: 0,
        letterTries: 0,
        callbackAt: null,
        callbacksSent: 0,
        callbacksAcknowledged: 0,
    };
}
/** SHA-256 in hex of the account number, a line feed and the IFSC or VPA: whoever asked for the payout can tell its payee. */
const payeeOf = (accountNo, extra) => createHash('sha256')
    .update(`${accountNo}\n${extraValue(extra)}`)
    .digest('hex');
/** The order's end: status, and the first callback due at once. */
export function settle(order, now) {
    order.status = order.becomes;
    if (order.becomes === SUCCESS)
        order.timesPaid += 1;
    order.callbackAt = order.letters.length > 0 ? now : null;
}
/**
 * What one delivery does to the order: an acknowledged letter makes room for the next one at once, any
 * other is due again after the schedule's next pause (seconds); past its end the letter is given up.
 */
export function afterDelivery(order, acknowledged, retries, now) {
    order.callbacksSent += 1;
    if (acknowledged)
        order.callbacksAcknowledged += 1;
    const pause = order.letters[order.letter] === 'forgery' ? undefined : retries[order.letterTries];
    if (!acknowledged && pause !== undefined) {
        order.letterTries += 1;
        order.callbackAt = now + pause * 1000;
        return;
    }
    order.letter += 1;
    order.letterTries = 0;
    order.callbackAt = order.letter < order.letters.length ? now : null;
}
