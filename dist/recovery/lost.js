import { json, lockPayouts } from "../ledger/ledger.js";
import { tellHistory } from "../ledger/sql/store.js";
import { isEnd } from "../payout/states.js";
import { keepSent, openKeys, raiseVersion, recordAttempts } from "./sql/lost.js";
/**
 * Gives the open payouts of fenced merchants the transitions back that the database lost and Kafka did not: what was
 * published keeps its version, so that no event id stands for two things and the highest version stays the latest. No
 * state changes, as only the gateway's word settles anything; an end is left out, for it is told again, under its own
 * event id, once the gateway confirms it. Returns how many payouts had lost something.
 */
export async function recallPublished(merchantIds, deps) {
    const { ledger, codec, readTopic } = deps;
    const open = new Map();
    for (const merchantId of merchantIds) {
        for (const each of await ledger.db.run(openKeys, { merchantId })) {
            open.set(`${merchantId}:${each.payoutId}`, { merchantId, ...each, values: [] });
        }
    }
    if (open.size === 0)
        return 0;
    await readTopic(ledger.topics.events, ({ key, value }) => {
        if (value)
            open.get(String(key))?.values.push(value);
    });
    let recalled = 0;
    for (const { merchantId, payoutId, version, values } of open.values()) {
        const told = await decode(values, codec);
        if (!told.some((each) => each.version > version))
            continue;
        await recall({ merchantId, payoutId }, told, ledger);
        recalled++;
    }
    return recalled;
}
async function decode(values, codec) {
    const told = [];
    for (const value of values) {
        const decoded = await codec.decode(value);
        if (decoded.kind === 'undecodable')
            throw new Error(`payout.events holds what cannot be read: ${decoded.detail}`);
        told.push(decoded.value);
    }
    return told;
}
function recall(key, told, ledger) {
    return ledger.db.transaction('recall published', async (tx) => {
        const [payout] = await lockPayouts(tx, [key]);
        if (!payout || isEnd(payout.state))
            return;
        const lost = lostSince(payout.version, told);
        const last = lost.at(-1);
        if (!last)
            return;
        await tx.run(tellHistory, {
            merchantIds: lost.map(() => key.merchantId),
            payoutIds: lost.map(() => key.payoutId),
            versions: lost.map(({ version }) => version),
            fromStates: lost.map(({ fromState }) => fromState?.toLowerCase() ?? null),
            toStates: lost.map(({ toState }) => toState.toLowerCase()),
            reasons: lost.map(({ reason }) => reason),
            sources: lost.map(({ evidence }) => evidence),
            exchanges: lost.map(() => json({ note: 'read back from payout.events after a restore' })),
        });
        const attempts = lost.filter(({ toState }) => toState === 'SUBMITTING').length;
        const attempt = payout.attempt + attempts;
        await tx.run(raiseVersion, { ...key, version: last.version, attempt });
        await tx.run(recordAttempts, {
            ...key,
            orderNo: payout.orderNo,
            first: payout.attempt + 1,
            last: attempt,
        });
        if (attempts > 0 && last.toState !== 'QUEUED')
            await tx.run(keepSent, key);
    });
}
/** What follows a version without a gap, up to an end. */
function lostSince(version, told) {
    const byVersion = new Map(told.map((each) => [each.version, each]));
    const lost = [];
    for (let next = byVersion.get(version + 1); next; next = byVersion.get(next.version + 1)) {
        if (isEnd(next.toState.toLowerCase()))
            break;
        lost.push(next);
    }
    return lost;
}
