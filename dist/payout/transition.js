import { isEnd, mayMove } from "./states.js";
/**
 * The next state with its fields. `dueAt` is what the caller wants to happen next; it never lies beyond the
 * deadline, at which a person takes over. Throws on a move that the state table forbids: a bug.
 */
export function become(payout, state, fields) {
    if (!mayMove(payout.state, state, payout.attempt)) {
        throw new Error(`payout ${payout.merchantId}:${payout.payoutId} cannot go from ${payout.state} to ${state}`);
    }
    const next = {
        ...payout,
        reason: null,
        unknownSince: null,
        ready: false,
        queries: 0,
        absences: 0,
        ...fields,
    };
    const version = payout.version + 1;
    return { ...next, state, version, dueAt: dueAt(state, next), fee: paidNothing(state) ? null : next.fee };
}
/** The gateway charges for what it pays: a fee that it named before is owed no more. */
export const paidNothing = (state) => isEnd(state) && state !== 'paid';
function dueAt(state, { dueAt, deadline }) {
    if (isEnd(state) || state === 'review')
        return null;
    // A lease is not cut short by the deadline: while it lasts, its owner may still be sending.
    return state === 'submitting' ? dueAt : Math.min(dueAt ?? deadline, deadline);
}
/** A decision that stores the payout, and what was heard with it. */
export const change = (before, after, source, exchange) => ({
    change: { before, after, source, exchange },
});
export function anomaly(payout, source, kind, detail, exchange) {
    const { merchantId, payoutId, orderNo } = payout;
    return { anomaly: { merchantId, payoutId, orderNo, kind, detail, source, exchange } };
}
export const nextQueryAt = (queries, table, now) => now + table.queryAfterMs[Math.min(queries, table.queryAfterMs.length - 1)];
/** Whether the gateway is asked about it again and again. */
export const isAskedAbout = ({ state }) => state === 'unknown' || state === 'processing';
/** The same payout after a question whose answer settled nothing: the next one waits longer. */
export function askedInVain(payout, table, now) {
    const queries = payout.queries + 1;
    return { ...payout, queries, dueAt: Math.min(nextQueryAt(queries, table, now), payout.deadline) };
}
