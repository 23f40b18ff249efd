import { fencedMerchants } from "../ledger/ledger.js";
import { cancel } from "../payout/cancel.js";
import { lockById, outcomesOf, storeDecided } from "./decided.js";
import { inTurns } from "./in-turns.js";
/** Decides and stores: state, history and messages together. An outcome for each payout, in their order. */
export const cancelPayouts = (request, ledger) => inTurns(request.payoutIds, (payoutIds) => ledger.db.transaction('cancel payouts', async (tx) => storeDecided(tx, ledger, await decide(tx, { ...request, payoutIds }))));
/** What `cancelPayouts` would do now. Stores nothing. */
export const previewCancel = (request, db) => inTurns(request.payoutIds, (payoutIds) => db.transaction('preview of a cancel', async (tx) => outcomesOf(await decide(tx, { ...request, payoutIds }))));
async function decide(tx, request) {
    const { merchantId, payoutIds, by, reason } = request;
    const payouts = await lockById(tx, request);
    const fenced = (await fencedMerchants(tx)).has(merchantId);
    return payoutIds.map((payoutId) => {
        const payout = payouts.get(payoutId);
        if (!payout)
            return { decision: { nothing: true }, outcome: { payoutId, kind: 'unknown' } };
        const decision = cancel(payout, 'OPERATOR', `${by}: ${reason}`, { fenced });
        return { decision, outcome: outcomeOf(payout, 'change' in decision ? decision.change.after : payout) };
    });
}
function outcomeOf(before, after) {
    const { payoutId, state } = before;
    if (after.version === before.version)
        return { payoutId, kind: 'too-late', state };
    const kind = after.state === 'cancelled' || after.state === 'held' ? after.state : 'review';
    return { payoutId, kind, from: state };
}
