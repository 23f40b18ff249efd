import { awaitsRelease, release } from "../payout/holds.js";
import { lockById, outcomesOf, storeDecided } from "./decided.js";
import { inTurns } from "./in-turns.js";
import { holdsOf, releasesOf } from "./sql/holds.js";
/** Decides and stores: state, history and messages together. An outcome for each payout, in their order. */
export const releasePayouts = (request, ledger) => inTurns(request.payoutIds, (payoutIds) => ledger.db.transaction('release payouts', async (tx) => storeDecided(tx, ledger, await decide(tx, { ...request, payoutIds }))));
/** What `releasePayouts` would do now. Stores nothing. */
export const previewRelease = (request, db) => inTurns(request.payoutIds, (payoutIds) => db.transaction('preview of a release', async (tx) => outcomesOf(await decide(tx, { ...request, payoutIds }))));
async function decide(tx, request) {
    const { merchantId, payoutIds, by, reason } = request;
    const payouts = await lockById(tx, request);
    const holds = Map.groupBy(await tx.run(holdsOf, { merchantId, payoutIds: [...payoutIds] }), ({ payoutId }) => payoutId);
    const earlier = await tx.run(releasesOf, { merchantId, payoutIds: [...payoutIds] });
    const releases = new Map(earlier.map(({ payoutId, at, note }) => [payoutId, { at, note }]));
    return payoutIds.map((payoutId) => {
        const payout = payouts.get(payoutId);
        if (!payout)
            return { decision: { nothing: true }, outcome: { payoutId, kind: 'unknown' } };
        const why = holds.get(payoutId) ?? [];
        const paysAt = why[0]?.paysAt ?? tx.now;
        const decision = release(payout, paysAt, `${by}: ${reason}`, tx.now);
        return {
            decision,
            outcome: { payoutId, ...outcomeOf(payout, decision, why, paysAt, releases.get(payoutId) ?? null) },
        };
    });
}
function outcomeOf(payout, decision, holds, paysAt, released) {
    const { state, reason, deadline, amount } = payout;
    if (!('change' in decision)) {
        return awaitsRelease(payout)
            ? { kind: 'expired', deadline }
            : { kind: 'not-waiting', state, reason, released };
    }
    return decision.change.after.state === 'queued'
        ? { kind: 'queued', amount, holds }
        : { kind: 'scheduled', amount, holds, paysAt };
}
