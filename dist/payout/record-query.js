import { askedInVain, become, change, isAskedAbout } from "./transition.js";
/**
 * What a "not found" does. It counts only if it was asked for after the grace period, and only with a
 * positive control. Enough of them in a row prove absence; for an order that the gateway had, or whose
 * platform number is known, they can only mean that something is wrong, so a person decides.
 */
export function recordAbsence(payout, exchange, { askedAt, positiveControl }, table, now) {
    if (!isAskedAbout(payout))
        return { nothing: true };
    // Of an order that the gateway had, doubts begin with the first "not found".
    const unknownSince = payout.unknownSince ?? askedAt;
    const counts = positiveControl && askedAt >= unknownSince + table.graceMs;
    const absences = counts ? payout.absences + 1 : payout.absences;
    if (absences < table.confirmations) {
        const after = { ...askedInVain(payout, table, now), unknownSince, absences };
        return change(payout, after, 'QUERY', exchange);
    }
    const neverThere = payout.state === 'unknown' && payout.agentpayOrderId === null;
    const after = neverThere && table.resendWhenAbsent
        ? become(payout, 'queued', { reason: 'proved-absent', ready: true })
        : become(payout, 'review', { reason: neverThere ? 'proved-absent' : 'not-found' });
    return change(payout, after, 'QUERY', exchange);
}
/** What a query without an answer does: ask again later. */
export function recordNoAnswer(payout, exchange, table, now) {
    if (!isAskedAbout(payout))
        return { nothing: true };
    return change(payout, askedInVain(payout, table, now), 'QUERY', exchange);
}
