import { circuitOf, pauseOf, recoveryOf } from "../merchant-overview.js";
import { circuitText, pauseText, recoveryText } from "../merchant-text.js";
import { awaitingRelease } from "../sql/holds.js";
import { inReview, merchantRows } from "../sql/merchants.js";
import { good, warning } from "./examine.js";
/** Why nothing may move though everything works. */
export const standstillChecks = (db) => [
    {
        name: 'paused merchants',
        needs: ['migrations'],
        run: async () => judgePauses(await db.run(merchantRows, {})),
    },
    {
        name: 'circuits',
        needs: ['migrations'],
        run: async () => judgeCircuits(await db.run(merchantRows, {})),
    },
    {
        name: 'payouts in review',
        needs: ['migrations'],
        run: async () => judgeReviews(await db.run(inReview, {})),
    },
    {
        name: 'payouts held',
        needs: ['migrations'],
        run: async () => judgeHolds(await db.run(awaitingRelease, {})),
    },
    {
        name: 'fenced merchants',
        needs: ['migrations'],
        run: async () => judgeRecoveries(await db.run(merchantRows, {})),
    },
];
export function judgeRecoveries(merchants) {
    const fenced = merchants.flatMap((row) => {
        const recovering = recoveryOf(row);
        return recovering ? [recoveryText(row.merchantId, recovering)] : [];
    });
    if (fenced.length === 0)
        return good('no merchant is fenced');
    return warning(fenced.join('; '), 'payoutd recover asks about what is left, and lets sending go on');
}
export function judgePauses(merchants) {
    const paused = merchants.flatMap((row) => {
        const pause = pauseOf(row);
        return pause ? [pauseText(row.merchantId, pause)] : [];
    });
    if (paused.length === 0)
        return good('no merchant is paused');
    return warning(paused.join('; '), 'payoutd resume lets a merchant go on, once the reason is gone');
}
export function judgeCircuits(merchants) {
    const open = merchants.flatMap((row) => {
        const circuit = circuitOf(row);
        return circuit ? [circuitText(row.merchantId, circuit)] : [];
    });
    if (open.length === 0)
        return good('no circuit is open');
    return warning(open.join('; '), 'see what became of the gateway: one payout tests it when that time has come');
}
export function judgeReviews(counts) {
    const waiting = counts.filter(({ count }) => count > 0);
    if (waiting.length === 0)
        return good('no payout waits for a person');
    return warning(`a person has to decide: ${waiting.map(({ merchantId, count }) => `${count} of merchant ${merchantId}`).join(', ')}`, 'payoutd payout review tells them with their evidence, payoutd payout resolve records the decision');
}
export function judgeHolds(held) {
    if (held.length === 0)
        return good('no payout waits for a release');
    return warning(`a person has to look: ${held.map(({ merchantId, reason, count }) => `${count} of merchant ${merchantId} (${reason})`).join(', ')}`, 'payoutd payout list --state held names them, payoutd payout release lets them go, payoutd payout cancel does not; at its deadline one that nobody released is cancelled');
}
