import { feeOf } from "./terms.js";
/** Gateway contract, "Payin order status". What 0 means there is not shown; here: nobody has paid yet. */
export const WAITING = 0;
export const PAID = 2;
export const FAILED = 3;
/** A new payin, as it is the moment it is taken. */
export function createPayin(wanted, { fees, expiryMs }, now) {
    const fee = feeOf(wanted.amount, fees);
    return {
        ...wanted,
        fee: fee < wanted.amount ? fee : wanted.amount,
        createdAt: now,
        expiresAt: now + expiryMs,
        status: WAITING,
        errorMessage: null,
        utr: null,
        paidAt: null,
        availableAt: null,
        callbackAt: null,
        callbackTries: 0,
        callbacksSent: 0,
        notifyStatus: 0,
    };
}
/** The payin with its money, and the first callback due at once. A failed one may still be recovered so. */
export const paid = (payin, utr, { settleMs }, now) => ({
    ...payin,
    status: PAID,
    errorMessage: null,
    utr,
    paidAt: now,
    availableAt: now + settleMs,
    ...newStory(now),
});
/** The payin that nobody paid, and the first callback due at once. */
export const failed = (payin, errorMessage, now) => ({
    ...payin,
    status: FAILED,
    errorMessage,
    ...newStory(now),
});
const newStory = (now) => ({ callbackAt: now, callbackTries: 0, notifyStatus: 0 });
/**
 * What one delivery does to the payin. An acknowledged callback ends the schedule; one that is not is due
 * again after the schedule's next pause (seconds), and past its end it is given up. One that was asked for
 * is not repeated, and one that told of a status which is no longer so counts for nothing.
 */
export function afterNotice(payin, notice, acknowledged, retries, now) {
    const sent = { ...payin, callbacksSent: payin.callbacksSent + 1 };
    if (notice.status !== payin.status)
        return sent;
    if (acknowledged)
        return { ...sent, notifyStatus: 2, callbackAt: null };
    const told = { ...sent, notifyStatus: payin.notifyStatus === 2 ? 2 : 1 };
    if (!notice.scheduled || payin.callbackAt === null)
        return told;
    const pause = retries[payin.callbackTries];
    if (pause === undefined)
        return { ...told, callbackAt: null };
    return { ...told, callbackAt: now + pause * 1000, callbackTries: payin.callbackTries + 1 };
}
