import { neverSent } from "./never-sent.js";
import { anomaly, become, change, nextQueryAt, paidNothing } from "./transition.js";
/**
 * What the answer to an apply call does to the payout it was made for. An answer counts only for the
 * payout's current attempt while that is open (submitting, or unknown since); otherwise it is evidence
 * that is kept, and it moves nothing. An answer to an attempt that the ledger does not know of shows that the ledger was
 * set back (see neverSent).
 */
export function recordApply(payout, attempt, answer, table, now) {
    const { exchange } = answer;
    if (attempt > payout.attempt) {
        const detail = `attempt ${attempt} was answered (${answer.kind}), and ${payout.attempt} attempts are known`;
        return neverSent(payout, 'APPLY', detail, exchange);
    }
    const knownId = payout.agentpayOrderId;
    if (answer.kind === 'accepted' && knownId !== null && knownId !== answer.agentpayOrderId) {
        return anomaly(payout, 'APPLY', 'order-id-mismatch', `apply says ${answer.agentpayOrderId}, known is ${knownId}`, exchange);
    }
    const open = payout.attempt === attempt && (payout.state === 'submitting' || payout.state === 'unknown');
    if (!open) {
        const contradicts = answer.kind === 'refused' && (payout.state === 'paid' || payout.state === 'processing');
        return contradicts
            ? anomaly(payout, 'APPLY', 'contradiction', `apply was refused (${answer.code}), yet the payout is ${payout.state}`, exchange)
            : change(payout, overtaken(payout, answer), 'APPLY', exchange);
    }
    switch (answer.kind) {
        case 'accepted': {
            const ended = answer.status === 'success' || answer.status === 'failed';
            const dueAt = ended ? now : nextQueryAt(0, table, now);
            const fields = { agentpayOrderId: answer.agentpayOrderId, fee: answer.fee, dueAt };
            return change(payout, become(payout, 'processing', fields), 'APPLY', exchange);
        }
        case 'refused':
            return change(payout, become(payout, 'failed', { reason: answer.message || answer.code }), 'APPLY', exchange);
        case 'not-sent':
        case 'retry-later': {
            const reason = answer.kind === 'not-sent' ? answer.reason : answer.code;
            const dueAt = now + backOffMs(payout.attempt);
            return change(payout, become(payout, 'queued', { reason, dueAt }), 'APPLY', exchange);
        }
        case 'duplicate':
        case 'unknown': {
            if (payout.state === 'unknown')
                return change(payout, payout, 'APPLY', exchange);
            const reason = answer.kind === 'unknown' ? answer.reason : 'duplicate';
            const fields = { reason, unknownSince: now, dueAt: nextQueryAt(0, table, now) };
            return change(payout, become(payout, 'unknown', fields), 'APPLY', exchange);
        }
    }
}
/** A callback came first: the answer still tells what the callback left out. */
function overtaken(payout, answer) {
    if (answer.kind !== 'accepted')
        return payout;
    const fee = paidNothing(payout.state) ? null : (payout.fee ?? answer.fee);
    return { ...payout, agentpayOrderId: answer.agentpayOrderId, fee };
}
/** 0.4 s after the first attempt, doubling up to a minute. */
const backOffMs = (attempt) => Math.min(60_000, 200 * 2 ** attempt);
