import { nextQueryAt } from "../payout/transition.js";
import { cutText } from "../platform/text.js";
import { mayMove } from "./states.js";
/** The next state with its fields. Throws on a move that the state table forbids: a bug. */
export function become(payin, state, fields) {
    if (!mayMove(payin.state, state)) {
        throw new Error(`payin ${payin.merchantId}:${payin.payinId} cannot go from ${payin.state} to ${state}`);
    }
    const fresh = { reason: null, unknownSince: null, queries: 0, absences: 0, dueAt: null };
    return { ...payin, ...fresh, ...fields, state, version: payin.version + 1 };
}
/**
 * The same payin after a query that settled nothing. One that waits is asked about again until it expires; one
 * that was asked about because of a recovery, as often as the timetable has waits.
 */
export function askAgain(payin, table, now) {
    const queries = payin.queries + 1;
    const next = nextQueryAt(queries, table, now);
    const waits = payin.state === 'open' || payin.state === 'unknown';
    if (waits)
        return { ...payin, queries, dueAt: now < payin.expiresAt ? Math.min(next, payin.expiresAt) : next };
    return { ...payin, queries, dueAt: queries < table.queryAfterMs.length ? next : null };
}
/** Whether it is time to stop asking about a payin that nobody has paid. */
export const isOver = (payin, now) => now >= payin.expiresAt;
/** A decision that stores the payin, and what was heard with it. */
export const change = (before, after, source, exchange) => ({ change: { before, after, source, exchange } });
/** Evidence that must not change the payin, kept under its order number. */
export const anomaly = ({ merchantId, payinId }, source, kind, detail, exchange) => ({
    anomaly: { merchantId, payoutId: null, orderNo: cutText(payinId, 64), kind, detail, source, exchange },
});
