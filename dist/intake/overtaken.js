import { fencedMerchants, lockPayouts, storeDecisions, } from "../ledger/ledger.js";
import { raiseFence } from "../ledger/sql/fence.js";
import { BY_PAYOUTD } from "../ledger/store-evidence.js";
import { cancel } from "../payout/cancel.js";
import { neverSent } from "../payout/never-sent.js";
import { lockForCancels, rememberCancels, reportedOrders, takeEarlyCancels } from "./sql/early-cancels.js";
const keyOf = ({ merchantId, payoutId }) => `${merchantId}:${payoutId}`;
const columnsOf = (keys) => ({
    merchantIds: keys.map(({ merchantId }) => merchantId),
    payoutIds: keys.map(({ payoutId }) => payoutId),
});
/** To be called before anything of these commands is stored: see `lockForCancels`. */
export async function lockBeforeCancels(tx, understood) {
    const alone = new Map();
    for (const each of understood) {
        if (each.kind === 'cancel')
            alone.set(each.merchantId, true);
        else if (each.kind === 'payout') {
            const { merchantId } = each.command;
            alone.set(merchantId, alone.get(merchantId) ?? false);
        }
    }
    const sorted = [...alone].sort(([one], [other]) => (one < other ? -1 : 1));
    if (sorted.length === 0)
        return;
    await tx.run(lockForCancels, {
        merchantIds: sorted.map(([merchantId]) => merchantId),
        alone: sorted.map(([, isAlone]) => isAlone),
    });
}
/** Cancels payouts. One that was never asked for is remembered, and cancelled when its command comes. */
export async function storeCancels(tx, ledger, cancels) {
    if (cancels.length === 0)
        return;
    const payouts = new Map((await lockPayouts(tx, cancels)).map((payout) => [keyOf(payout), payout]));
    const early = cancels.filter((each) => !payouts.has(keyOf(each)));
    if (early.length > 0) {
        await tx.run(rememberCancels, { ...columnsOf(early), whys: early.map(({ why }) => why) });
    }
    const fenced = await fencedMerchants(tx);
    const decisions = cancels.map((each) => {
        const key = keyOf(each);
        const payout = payouts.get(key);
        if (!payout)
            return nobodyKnows(each);
        const decision = cancel(payout, 'COMMAND', each.why, { fenced: fenced.has(each.merchantId) });
        if ('change' in decision)
            payouts.set(key, decision.change.after);
        return decision;
    });
    await storeDecisions(tx, ledger, decisions);
}
const nobodyKnows = ({ merchantId, payoutId }) => ({
    anomaly: {
        merchantId,
        payoutId,
        orderNo: null,
        kind: 'cancel-of-unknown-payout',
        detail: 'a cancellation came for a payoutId that was never requested: it is remembered for a month, and cancels the payout ' +
            'if its request comes',
        source: 'COMMAND',
        exchange: null,
    },
});
/**
 * Fences the merchants of orders that the gateway has reported although their commands come only now: they were sent by
 * a ledger that was set back since. To be called before payouts are locked. Returns the order numbers.
 */
export async function fenceReported(tx, payouts) {
    const reported = await tx.run(reportedOrders, {
        merchantIds: payouts.map(({ merchantId }) => merchantId),
        orderNos: payouts.map(({ orderNo }) => orderNo),
    });
    const reason = 'the ledger was set back: the gateway reported an order before its command came';
    for (const merchantId of [...new Set(reported.map(({ merchantId }) => merchantId))].sort()) {
        await tx.run(raiseFence, { merchantId, by: BY_PAYOUTD, reason, feeEstimate: 0n });
    }
    return new Set(reported.map(({ orderNo }) => orderNo));
}
/** What came before the commands of these new payouts does to them: the gateway's word, and then a cancellation. */
export async function decideOvertaken(tx, payouts, reported) {
    const cancels = new Map((await tx.run(takeEarlyCancels, columnsOf(payouts))).map((each) => [keyOf(each), each.why]));
    if (cancels.size === 0 && reported.size === 0)
        return [];
    const fenced = await fencedMerchants(tx);
    return payouts.flatMap((payout) => {
        const decisions = [];
        let after = payout;
        if (payout.orderNo !== null && reported.has(payout.orderNo)) {
            const sent = neverSent(payout, 'COMMAND', 'the gateway reported this order before its command came', null);
            if ('change' in sent)
                after = sent.change.after;
            decisions.push(sent);
        }
        const why = cancels.get(keyOf(payout));
        if (why !== undefined) {
            decisions.push(cancel(after, 'COMMAND', why, { fenced: fenced.has(payout.merchantId) }));
        }
        return decisions;
    });
}
