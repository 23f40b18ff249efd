import { UNKEPT } from "../payout/evidence.js";
import { recordNothingFound } from "./record-query.js";
import { settle } from "./settle.js";
import { keyOf, lockPayins, storePayins } from "./store.js";
import { anomaly } from "./transition.js";
/**
 * The one door through which the gateway's word changes a payin that it has: load, decide, store, in one
 * transaction. What is heard about one payin is folded in order. Resolves once it is stored; one result per
 * item.
 */
export async function settleHeard(heard, deps) {
    const decisions = await deps.ledger.db.transaction('settle payins', async (tx) => {
        const payins = new Map((await lockPayins(tx, heard)).map((payin) => [keyOf(payin), payin]));
        const decisions = heard.map((each) => {
            const decision = decide(each, payins.get(keyOf(each)), deps.terms.get(each.merchantId), tx.now);
            if ('change' in decision)
                payins.set(keyOf(each), decision.change.after);
            return decision;
        });
        await storePayins(tx, deps.ledger, decisions);
        return decisions;
    });
    decisions.forEach((decision, i) => {
        deps.counted.inc({ source: heard[i].source, outcome: outcome(decision) });
    });
    return heard.map(() => undefined);
}
/** The same evidence without what is only kept to be read. */
export function bare(heard) {
    if (heard.source === 'CALLBACK')
        return { ...heard, report: bareReport(heard.report) };
    const { answer } = heard;
    return answer.kind === 'known'
        ? { ...heard, answer: { ...answer, report: bareReport(answer.report) } }
        : { ...heard, answer: { ...answer, exchange: UNKEPT } };
}
const bareReport = (report) => ({
    ...report,
    errorMessage: null,
    voucherMap: null,
    exchange: UNKEPT,
});
function decide(heard, payin, { mchId, table }, now) {
    if (heard.source === 'QUERY') {
        if (!payin)
            return { nothing: true };
        const { answer } = heard;
        return answer.kind === 'known'
            ? settle(payin, answer.report, 'QUERY', table, now)
            : recordNothingFound(payin, answer, heard, table, now);
    }
    const { report } = heard;
    const odd = (kind, detail) => anomaly(heard, 'CALLBACK', kind, detail, report.exchange);
    if (!payin)
        return odd('unknown-order', 'a signed report came for a payin that was never asked for');
    if (report.mchId !== null && report.mchId !== mchId) {
        return odd('merchant-mismatch', `the gateway says ${report.mchId}, ours is ${mchId}`);
    }
    return settle(payin, report, 'CALLBACK', table, now);
}
function outcome(decision) {
    if ('anomaly' in decision)
        return 'anomaly';
    if ('nothing' in decision)
        return 'absorbed';
    const { before, after } = decision.change;
    return after.version > before.version ? after.state : 'absorbed';
}
