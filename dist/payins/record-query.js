import { askAgain, become, change, isOver } from "./transition.js";
/**
 * What a query does that found no order: ask again later, or leave it to a person when the payin's time is
 * over. A "not found" counts if it was asked for after the grace period, and with a positive control: the same
 * settings find a payin that is known to exist. Enough of them in a row prove that the gateway never got the order;
 * for one whose platform number is known they can only mean that something is wrong.
 */
export function recordNothingFound(payin, answer, { askedAt, positiveControl }, table, now) {
    if (payin.state === 'creating' || payin.state === 'paid')
        return { nothing: true };
    const waits = payin.state === 'unknown' || payin.state === 'open';
    const absent = waits && answer.kind === 'not-found';
    // Of an order that the gateway had, doubts begin with the first "not found".
    const unknownSince = absent ? (payin.unknownSince ?? askedAt) : payin.unknownSince;
    const counts = absent && positiveControl && askedAt >= (unknownSince ?? askedAt) + table.graceMs;
    const counted = { ...payin, unknownSince, absences: counts ? payin.absences + 1 : payin.absences };
    return change(payin, next(), 'QUERY', answer.exchange);
    function next() {
        if (counts && counted.absences >= table.confirmations) {
            return payin.payOrderId === null
                ? become(payin, 'failed', { reason: 'proved-absent' })
                : become(payin, 'review', { reason: 'not-found' });
        }
        if (waits && isOver(payin, now))
            return become(payin, 'review', { reason: 'expired' });
        return askAgain(counted, table, now);
    }
}
