import { lockPayouts, storeOutbox } from "../ledger/ledger.js";
import { reversalMessage } from "../ledger/messages.js";
import { scrub } from "../payout/mask.js";
import { setAcknowledged } from "./sql/anomalies.js";
import { contradictionsTold } from "./sql/contradictions.js";
import { keepReversal, reversalOf } from "./sql/reversal.js";
/**
 * Records a paid transfer as returned and tells whoever reads results, once for each payout. The payout stays
 * paid, and its result as it was published. The anomaly is acknowledged by it, unless it was before.
 */
export function reversePayout(request, ledger) {
    return ledger.db.transaction('reverse payout', async (tx) => {
        const outcome = await decide(tx, request);
        if (outcome.kind !== 'reversed')
            return outcome;
        const { anomalyId, payout } = outcome;
        const { merchantId, payoutId, amount } = payout;
        const { by } = request;
        const reason = scrub(request.reason);
        await tx.run(keepReversal, { merchantId, payoutId, anomalyId, amount, by, reason });
        const acknowledgement = `confirmed as a returned transfer: ${reason}`;
        await tx.run(setAcknowledged, { merchantId, anomalyIds: [anomalyId], by, reason: acknowledgement });
        const message = reversalMessage({ payout, anomalyId, reason, at: tx.now }, ledger.topics, ledger.encode);
        await storeOutbox(tx, [message]);
        return outcome;
    });
}
/** What `reversePayout` would do now. Stores nothing. */
export const previewReverse = (request, db) => db.transaction('preview of a reversal', (tx) => decide(tx, request));
async function decide(tx, request) {
    const [payout] = await lockPayouts(tx, [request]);
    if (!payout)
        return { kind: 'unknown' };
    const { merchantId, payoutId, state } = payout;
    const [before] = await tx.run(reversalOf, { merchantId, payoutId });
    if (before)
        return { kind: 'already', ...before };
    if (state !== 'paid')
        return { kind: 'not-paid', state };
    const anomalyIds = (await tx.run(contradictionsTold, { merchantId, payoutId })).map(({ anomalyId }) => anomalyId);
    const wanted = request.anomalyId?.toLowerCase() ?? null;
    if (wanted === null && anomalyIds.length > 1)
        return { kind: 'several', anomalyIds };
    const anomalyId = wanted === null ? anomalyIds[0] : anomalyIds.find((id) => id === wanted);
    return anomalyId === undefined ? { kind: 'no-word', anomalyIds } : { kind: 'reversed', anomalyId, payout };
}
