import { formatRupees } from "./money.js";
import { neverSent } from "./never-sent.js";
import { isEnd } from "./states.js";
import { anomaly, askedInVain, become, change, isAskedAbout, nextQueryAt, } from "./transition.js";
/**
 * What a signed statement of the gateway (a callback, or the answer to a query) does to its payout. Never
 * throws: a contradiction is a value.
 */
export function settle(payout, report, source, table, now) {
    const { exchange } = report;
    if (payout.attempt === 0) {
        const detail = `the gateway reports ${report.status} for a payout that was never sent`;
        return neverSent(payout, source, detail, exchange);
    }
    const odd = (kind, detail) => {
        const decision = anomaly(payout, source, kind, detail, exchange);
        return source === 'QUERY' && isAskedAbout(payout)
            ? {
                ...decision,
                change: { before: payout, after: askedInVain(payout, table, now), source, exchange: null },
            }
            : decision;
    };
    const mismatch = compare(payout, report);
    if (mismatch)
        return odd(mismatch.kind, mismatch.detail);
    if (report.status === 'unlisted')
        return odd('unlisted-status', 'the status is not in the contract');
    const known = {
        agentpayOrderId: payout.agentpayOrderId ?? report.agentpayOrderId,
        fee: report.fee ?? payout.fee,
        utr: report.utr ?? payout.utr,
    };
    if (isEnd(payout.state)) {
        return agrees(payout.state, report.status)
            ? change(payout, payout, source, exchange)
            : odd('contradiction', `the gateway reports ${report.status} for a payout that is ${payout.state}`);
    }
    switch (report.status) {
        case 'success':
            return change(payout, become(payout, 'paid', known), source, exchange);
        case 'failed':
            return change(payout, become(payout, 'failed', { ...known, reason: report.errorMessage ?? 'failed' }), source, exchange);
        case 'pending':
        case 'processing': {
            const queries = source === 'QUERY' ? payout.queries + 1 : payout.queries;
            const dueAt = nextQueryAt(queries, table, now);
            if (payout.state === 'review' && now >= payout.deadline)
                return change(payout, payout, source, exchange);
            return payout.state === 'processing'
                ? change(payout, { ...payout, ...known, ...UNDOUBTED, queries, dueAt: Math.min(dueAt, payout.deadline) }, source, exchange)
                : change(payout, become(payout, 'processing', { ...known, queries, dueAt }), source, exchange);
        }
    }
}
/** Whoever was not found for a while is there. */
const UNDOUBTED = { unknownSince: null, absences: 0 };
/** A late "processing" agrees with any end that the gateway itself reported. */
function agrees(state, status) {
    if (status === 'pending' || status === 'processing')
        return state === 'paid' || state === 'failed';
    return (state === 'paid' && status === 'success') || (state === 'failed' && status === 'failed');
}
function compare(payout, report) {
    if (payout.orderNo !== report.mchOrderNo) {
        return { kind: 'order-mismatch', detail: 'the order number is of another attempt series' };
    }
    if (report.amount !== payout.amount) {
        const says = report.amount === null ? 'no amount' : formatRupees(report.amount);
        return {
            kind: 'amount-mismatch',
            detail: `the gateway says ${says}, ours is ${formatRupees(payout.amount)}`,
        };
    }
    if (payout.agentpayOrderId && report.agentpayOrderId && payout.agentpayOrderId !== report.agentpayOrderId) {
        return {
            kind: 'order-id-mismatch',
            detail: `the gateway says ${report.agentpayOrderId}, known is ${payout.agentpayOrderId}`,
        };
    }
    return null;
}
