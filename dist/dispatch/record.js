import { lockPayouts } from "../ledger/ledger.js";
import { storeEvidence } from "../ledger/store-evidence.js";
import { orderNumber } from "../payout/identifiers.js";
import { NEVER_SENT } from "../payout/never-sent.js";
import { afterAnswers } from "./pace.js";
import { lockPurse, setMood } from "./sql/purse.js";
/**
 * Records answers as they came, many in one transaction. Locks merchants before payouts, as every claim
 * does. One result per outcome.
 */
export async function record(outcomes, deps) {
    const { judge, tables, log } = deps;
    await storeEvidence(deps, 'record apply answers', async (tx, store) => {
        const watched = [
            ...new Set(outcomes.filter(({ tell }) => tell).map(({ merchantId }) => merchantId)),
        ].sort();
        for (const merchantId of watched) {
            const [purse] = await tx.run(lockPurse, { merchantId });
            if (!purse)
                continue;
            const answers = outcomes
                .filter((outcome) => outcome.merchantId === merchantId)
                .map(({ answer }) => answer);
            const mood = afterAnswers(purse, answers, tx.now);
            await tx.run(setMood, { merchantId, ...mood });
            if (mood.circuitOpened > purse.circuitOpened) {
                const forMs = (mood.circuitOpenUntil ?? tx.now) - tx.now;
                log.warn({ merchantId, reason: mood.circuitReason, forMs }, 'circuit opened: nothing is sent meanwhile');
            }
            else if (mood.circuitOpened === 0 && purse.circuitOpened > 0) {
                log.info({ merchantId }, 'circuit closed: the gateway answers, so sending goes on');
            }
        }
        const locked = await lockPayouts(tx, outcomes);
        const payouts = new Map(locked.map((payout) => [`${payout.merchantId}:${payout.payoutId}`, payout]));
        const decisions = outcomes.map((outcome) => {
            const { merchantId, payoutId, attempt, answer } = outcome;
            const key = `${merchantId}:${payoutId}`;
            const payout = payouts.get(key);
            if (!payout)
                return gone(outcome);
            const table = tables.get(merchantId);
            const decision = judge.recordApply(payout, attempt, answer, table, tx.now);
            if ('change' in decision)
                payouts.set(key, decision.change.after);
            return decision;
        });
        await store(decisions);
    });
    return outcomes.map(() => undefined);
}
/** The ledger has lost even the command, which intake reads again. */
const gone = ({ merchantId, payoutId, attempt, answer }) => ({
    anomaly: {
        merchantId,
        payoutId,
        orderNo: orderNumber(merchantId, payoutId, 1),
        kind: NEVER_SENT,
        detail: `attempt ${attempt} was answered (${answer.kind}), and the payout is gone from the ledger`,
        source: 'APPLY',
        exchange: answer.exchange,
    },
});
