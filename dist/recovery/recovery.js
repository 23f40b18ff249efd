import { lockPayouts, storeDecisions } from "../ledger/ledger.js";
import { raiseFence } from "../ledger/sql/fence.js";
import { CANCEL_REQUESTED } from "../payout/cancel.js";
import { recover, recoverAbsent } from "../payout/recover.js";
import { become, change } from "../payout/transition.js";
import { pause } from "../platform/lifecycle.js";
import { askEach } from "../reconcile/ask-each.js";
import { fenceOf, graceLeft, lockFence, takeFenceDown } from "./sql/fence.js";
import { forgetList, keepAbsence, keepFound, listOpenPayouts, lockCancelRequested, payoutById, progress, tally, unasked, } from "./sql/list.js";
import { recordAttempts } from "./sql/lost.js";
/**
 * Fences merchants, all of them in one transaction: once it resolves, nothing more of them is sent. A fence that stands
 * stays as it is.
 */
export function fence(db, merchants, { by, reason }) {
    const sorted = merchants.toSorted((a, b) => (a.merchantId < b.merchantId ? -1 : 1));
    return db.transaction('fence merchants', async (tx) => {
        const fences = [];
        for (const each of sorted)
            fences.push(...(await tx.run(raiseFence, { ...each, by, reason })));
        return fences;
    });
}
/** The fence of a merchant; null: it has none. */
export const findFence = async (db, merchantId) => (await db.run(fenceOf, { merchantId }))[0] ?? null;
/** Puts every open payout on the list: to be called once the ledger has taken in everything that may have been sent. */
export async function listOpen(db, { merchantId }) {
    await db.write('list open payouts', listOpenPayouts, { merchantId });
}
/**
 * Asks the gateway about every listed payout of a fenced merchant that it has not told of yet, and settles what it finds.
 * Waits for the grace first: an order that left right before the fence may not be there to be found. `interrupted` and `silent` runs go on when it is called again.
 */
export async function askAboutOpen(raised, deps) {
    const { ledger, table, signal, onProgress } = deps;
    const { db } = ledger;
    const { merchantId, since } = raised;
    const [counted] = await db.run(progress, { merchantId });
    const { listed, asked } = counted ?? { listed: 0, asked: 0 };
    if (asked === listed)
        return 'all-asked';
    const [left] = await db.run(graceLeft, { since, graceMs: table.graceMs });
    await pause(left?.ms ?? 0, signal);
    if (signal.aborted)
        return 'interrupted';
    let told = asked;
    onProgress(told, listed);
    return askEach({
        ...deps,
        // One more: the first may come before the positive control.
        passes: table.confirmations + 1,
        betweenMs: table.queryAfterMs[0] ?? 0,
        waiting: (after, limit) => db.run(unasked, { merchantId, after, limit }),
        async ask(payoutId) {
            const heard = await askOne(raised, payoutId, deps);
            if (heard === 'told')
                onProgress(++told, listed);
            return heard;
        },
    });
}
async function askOne(raised, payoutId, deps) {
    const { ledger, query, control } = deps;
    const { merchantId } = raised;
    const [payout] = await ledger.db.run(payoutById, { merchantId, payoutId });
    if (!payout || payout.orderNo === null)
        throw new Error(`payout ${merchantId}:${payoutId} was listed and is gone`);
    const answer = await query(payout.orderNo);
    switch (answer.kind) {
        case 'unknown':
            return 'silent';
        case 'found':
            control.found(payout.orderNo);
            await settleFound(raised, payout, answer.report, deps);
            return 'told';
        case 'not-found': {
            if (!(await control.holds()))
                return 'not-yet';
            return recordAbsence(payout, answer.exchange, deps);
        }
    }
}
function recordAbsence(key, exchange, { ledger, table }) {
    return ledger.db.transaction('record recovered absence', async (tx) => {
        const [payout] = await lockPayouts(tx, [key]);
        if (!payout)
            throw new Error(`payout ${key.merchantId}:${key.payoutId} is gone`);
        const { merchantId, payoutId, attempt } = payout;
        const [kept] = await tx.run(keepAbsence, {
            merchantId,
            payoutId,
            confirmations: table.confirmations,
            found: attempt === 0 ? 'never-sent' : 'not-found',
        });
        if (!kept?.believed)
            return 'not-yet';
        const decision = kept.sent ? recoverAbsent(payout, exchange, table) : null;
        if (decision)
            await storeDecisions(tx, ledger, [decision]);
        return 'told';
    });
}
function settleFound({ by, reason }, key, report, { ledger, judge, table }) {
    const note = `${by}: ${reason} (the ledger was restored, and the gateway has this order)`;
    return ledger.db.transaction('settle recovered', async (tx) => {
        const [payout] = await lockPayouts(tx, [key]);
        if (!payout)
            throw new Error(`payout ${key.merchantId}:${key.payoutId} is gone`);
        const { merchantId, payoutId } = payout;
        const { decisions, after, sent } = recover(payout, report, note, judge, table, tx.now);
        await storeDecisions(tx, ledger, decisions);
        if (sent) {
            await tx.run(recordAttempts, { merchantId, payoutId, orderNo: payout.orderNo, first: 1, last: 1 });
        }
        await tx.run(keepFound, { merchantId, payoutId, found: after.state });
    });
}
/** Takes the fence down if every payout on the list was told of, and cancels what was to be cancelled meanwhile. */
export function takeDown({ merchantId, by, reason }, ledger) {
    return ledger.db.transaction('unfence merchant', async (tx) => {
        await tx.run(lockFence, { merchantId });
        const findings = await tx.run(tally, { merchantId });
        if (findings.some(({ found }) => found === null))
            return { kind: 'open', findings };
        const asked = await tx.run(lockCancelRequested, { merchantId, reason: CANCEL_REQUESTED });
        const note = `${by}: ${reason} (the ledger was restored, and the gateway has no such order)`;
        const cancelled = asked.map((payout) => change(payout, become(payout, 'cancelled', { reason: 'cancelled' }), 'OPERATOR', { note }));
        await storeDecisions(tx, ledger, cancelled);
        await tx.run(forgetList, { merchantId });
        await tx.run(takeFenceDown, { merchantId });
        return { kind: 'recovered', findings };
    });
}
