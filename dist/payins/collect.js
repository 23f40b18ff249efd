import { payinFingerprint, payinIdFor } from "./identifiers.js";
import { recordCreate } from "./record-create.js";
import { recordRecovery } from "./record-recovery.js";
import { insertPayin, payinWithFingerprint } from "./sql/insert.js";
import { lockPayins, storeArrival, storePayins } from "./store.js";
import { findPayin } from "./story.js";
/**
 * Asks a merchant's gateway for a payin, once: the intent is committed before the call, and whoever repeats the
 * request under its key gets the payin as it is by then. A creation without an answer is unknown, and asked
 * about. Rejects where the ledger cannot be reached: then the request may be repeated.
 */
export async function createPayin({ merchantId, idempotencyKey, request, traceparent }, { ledger, collectors, fingerprintKey, clock }) {
    const { create, table, leaseMs, sendTimeoutMs, expireMs } = collectors.get(merchantId);
    const key = { merchantId, payinId: payinIdFor(merchantId, idempotencyKey) };
    const fingerprint = payinFingerprint(request, fingerprintKey);
    const { amount, currency } = request;
    const wanted = { ...key, fingerprint, amount, currency, traceparent, leaseMs, expireMs };
    const sendBefore = clock.monotonic() + leaseMs - sendTimeoutMs;
    const isNew = await ledger.db.transaction('intend payin', async (tx) => {
        const [payin] = await tx.run(insertPayin, wanted);
        if (payin)
            await storeArrival(tx, payin);
        return payin !== undefined;
    });
    if (!isNew)
        return repeated(key, fingerprint, ledger);
    const order = { ...request, mchOrderNo: key.payinId };
    const answer = await create(order, () => clock.monotonic() < sendBefore);
    const payin = await decided('record creation', key, ledger, (payin, now) => recordCreate(payin, answer, table, now));
    return { kind: 'created', payin };
}
async function repeated(key, fingerprint, { db }) {
    const [found] = await db.run(payinWithFingerprint, key);
    if (!found)
        throw new Error(`payin ${key.merchantId}:${key.payinId} was there and is gone`);
    const { fingerprint: before, ...payin } = found;
    return before.equals(fingerprint) ? { kind: 'repeated', payin } : { kind: 'conflict', payinId: key.payinId };
}
/**
 * Asks the gateway to find the payment with this UTR and to count it for a payin, also one that failed or
 * expired. What it comes to is kept in the history; whether the payin is paid, a callback or a query tells.
 */
export async function recoverPayin(key, utr, { ledger, collectors }) {
    const { recover, table } = collectors.get(key.merchantId);
    const payin = await findPayin(ledger.db, key);
    if (!payin)
        return { kind: 'no-such-payin' };
    const { payOrderId, state } = payin;
    if (payOrderId === null || state === 'paid')
        return { kind: 'impossible', payin };
    const answer = await recover({ payOrderId, utr });
    const after = await decided('recover payin', key, ledger, (payin, now) => recordRecovery(payin, answer, table, now));
    return { kind: 'answered', answer, payin: after };
}
/** Stores, by a transaction of this name, what `decide` makes of a payin that exists, and returns it as it is then. */
async function decided(name, key, ledger, decide) {
    return ledger.db.transaction(name, async (tx) => {
        const [payin] = await lockPayins(tx, [key]);
        if (!payin)
            throw new Error(`payin ${key.merchantId}:${key.payinId} was asked for and is gone`);
        const decision = decide(payin, tx.now);
        await storePayins(tx, ledger, [decision]);
        return 'change' in decision ? decision.change.after : payin;
    });
}
