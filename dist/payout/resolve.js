import { scrub } from "./mask.js";
import { become } from "./transition.js";
/** What a UTR can be (gateway contract, "Limits": String(30)). */
export const isUtr = (text) => /^[A-Za-z0-9-]{1,30}$/.test(text);
/** What a person's decision does to a payout. Only one in review waits for a person. */
export function resolve(payout, resolution, decided, now) {
    if (payout.state !== 'review')
        return { refused: { kind: 'not-in-review', state: payout.state } };
    const reason = scrub(decided.reason);
    const move = (state, fields, what) => ({
        change: {
            before: payout,
            after: become(payout, state, fields),
            source: 'OPERATOR',
            exchange: { note: `${decided.by}: ${reason} (${what})` },
        },
    });
    switch (resolution.kind) {
        case 'paid':
            return move('paid', { utr: resolution.utr }, `paid, UTR ${resolution.utr}`);
        case 'failed':
            return move('failed', { reason }, 'failed');
        case 'resend': {
            const { confirmedAbsentBy, terms } = resolution;
            const deadline = resolution.deadline ?? aheadOf(now, payout.deadline, terms.deadlineMs);
            const refused = risk(payout, confirmedAbsentBy, deadline, terms, now);
            if (refused)
                return { refused };
            // What the gateway told of an order that is not there belongs to no order; the next answer tells anew.
            const fresh = { agentpayOrderId: null, fee: null, utr: null };
            const fields = { ...fresh, reason: 'resent', ready: true, deadline, dueAt: deadline };
            return move('queued', fields, resendInWords(payout, confirmedAbsentBy, deadline));
        }
    }
}
const aheadOf = (now, deadline, usualMs) => deadline > now ? deadline : now + usualMs;
function risk({ agentpayOrderId }, confirmedAbsentBy, deadline, { duplicatesRefused }, now) {
    if (confirmedAbsentBy === null) {
        if (agentpayOrderId !== null)
            return { kind: 'gateway-had-it', agentpayOrderId };
        if (!duplicatesRefused)
            return { kind: 'duplicates-not-refused' };
    }
    return deadline > now ? null : { kind: 'deadline-over', deadline };
}
function resendInWords(payout, confirmedAbsentBy, deadline) {
    const { agentpayOrderId } = payout;
    return [
        'sent again under the same order number',
        ...(confirmedAbsentBy === null
            ? []
            : [`${confirmedAbsentBy} confirmed that the gateway has no such order`]),
        ...(agentpayOrderId === null ? [] : [`which it had called ${agentpayOrderId}`]),
        ...(deadline === payout.deadline ? [] : [`deadline ${new Date(deadline).toISOString()}`]),
    ].join(', ');
}
