import { lockOrders } from "../ledger/ledger.js";
import { storeEvidence } from "../ledger/store-evidence.js";
import { UNKEPT } from "../payout/evidence.js";
import { NEVER_SENT } from "../payout/never-sent.js";
import { cutText } from "../platform/text.js";
/**
 * The one door through which the gateway's word changes a payout: load, decide, store, in one transaction.
 * What is heard about one payout is folded in order. Resolves once it is stored; one result per item.
 */
export async function settleHeard(heard, deps) {
    const decisions = await storeEvidence(deps, 'settle payouts', async (tx, store) => {
        const locked = await lockOrders(tx, heard);
        const payouts = new Map(locked.map((payout) => [`${payout.merchantId}:${payout.orderNo}`, payout]));
        const decisions = heard.map((each) => {
            const key = `${each.merchantId}:${each.mchOrderNo}`;
            const table = deps.tables.get(each.merchantId);
            const decision = decide(each, payouts.get(key), deps.judge, table, tx.now);
            if ('change' in decision)
                payouts.set(key, decision.change.after);
            return decision;
        });
        await store(decisions);
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
    return answer.kind === 'found'
        ? { ...heard, answer: { ...answer, report: bareReport(answer.report) } }
        : { ...heard, answer: { ...answer, exchange: UNKEPT } };
}
const bareReport = (report) => ({ ...report, errorMessage: null, exchange: UNKEPT });
function decide(heard, payout, judge, table, now) {
    if (!payout)
        return unknownOrder(heard);
    if (heard.source === 'CALLBACK')
        return judge.settle(payout, heard.report, 'CALLBACK', table, now);
    const { answer } = heard;
    switch (answer.kind) {
        case 'found':
            return judge.settle(payout, answer.report, 'QUERY', table, now);
        case 'not-found':
            return judge.recordAbsence(payout, answer.exchange, heard, table, now);
        case 'unknown':
            return judge.recordNoAnswer(payout, answer.exchange, table, now);
    }
}
function unknownOrder(heard) {
    const exchange = heard.source === 'CALLBACK' ? heard.report.exchange : null;
    return {
        anomaly: {
            merchantId: heard.merchantId,
            payoutId: null,
            orderNo: cutText(heard.mchOrderNo, 64),
            ...ofUnknownOrder(heard),
            source: heard.source,
            exchange,
        },
    };
}
/** Anybody who may use the merchant's account may make orders; one that payoutd asks about was in the ledger. */
const ofUnknownOrder = ({ source }) => source === 'CALLBACK'
    ? { kind: 'unknown-order', detail: 'a signed report came for an order that was never sent from here' }
    : { kind: NEVER_SENT, detail: 'an order that payoutd asked the gateway about is gone from the ledger' };
function outcome(decision) {
    if ('anomaly' in decision)
        return 'anomaly';
    if ('nothing' in decision)
        return 'absorbed';
    const { before, after } = decision.change;
    return after.version > before.version ? after.state : 'absorbed';
}
