import { lockPayouts, storeDecisions } from "../ledger/ledger.js";
import { resolve } from "../payout/resolve.js";
import { contradictionsTold } from "./sql/contradictions.js";
import { otherWithUtr } from "./sql/find.js";
/** Decides and stores: state, history and messages together. */
export function resolvePayout(request, ledger) {
    return ledger.db.transaction('resolve payout', async (tx) => {
        const { decision, outcome } = await decide(tx, request);
        if (decision)
            await storeDecisions(tx, ledger, [decision]);
        return outcome;
    });
}
/** What `resolvePayout` would do now. Stores nothing. */
export function previewResolve(request, db) {
    return db.transaction('preview of a resolution', async (tx) => (await decide(tx, request)).outcome);
}
async function decide(tx, request) {
    const [payout] = await lockPayouts(tx, [request]);
    if (!payout)
        return { decision: null, outcome: { kind: 'unknown' } };
    const { merchantId, payoutId } = payout;
    const decision = resolve(payout, request.resolution, request, tx.now);
    if ('refused' in decision) {
        const told = await tx.run(contradictionsTold, { merchantId, payoutId });
        const contradictedBy = told.map(({ anomalyId }) => anomalyId);
        return { decision: null, outcome: { kind: 'refused', refusal: decision.refused, contradictedBy } };
    }
    const { after } = decision.change;
    if (after.state === 'paid' && after.utr !== null) {
        const { utr } = after;
        const [takenBy] = await tx.run(otherWithUtr, { merchantId, payoutId, utr });
        if (takenBy)
            return { decision: null, outcome: { kind: 'utr-taken', utr, takenBy } };
    }
    return { decision, outcome: { kind: 'resolved', payout: after } };
}
