import { lockPayouts } from "../ledger/ledger.js";
import { blame, sql } from "../platform/postgres.js";
import { accept } from "./accept.js";
import { storeCancels } from "./overtaken.js";
import { understand } from "./read.js";
/** Not an error: ends the transaction in which everything was tried, so that nothing of it stays. */
class Tried extends Error {
    expected;
    constructor(expected) {
        super();
        this.expected = expected;
    }
}
const mark = sql `savepoint tried`;
const backToMark = sql `rollback to savepoint tried`;
/**
 * What intake would make of these values if they came now, in this order. Each is taken in as intake does it, and all
 * of it is rolled back; meanwhile intake waits for payouts of the same ids. Throws when the registry or the database cannot be asked.
 */
export async function previewIntake(values, deps) {
    const decoded = [];
    for (const value of values)
        decoded.push(await deps.decode(value));
    try {
        return await deps.ledger.db.transaction('preview of commands', async (tx) => {
            const expected = [];
            for (const each of decoded)
                expected.push(await tryOut(tx, each, deps));
            throw new Tried(expected);
        });
    }
    catch (error) {
        if (error instanceof Tried)
            return error.expected;
        throw error;
    }
}
async function tryOut(tx, decoded, deps) {
    const understood = understand(decoded, deps.terms);
    await tx.run(mark, {});
    try {
        switch (understood.kind) {
            case 'dead':
                return { ...understood, detail: decoded.kind === 'undecodable' ? decoded.detail : null };
            case 'batch':
                return { kind: 'batch', batchId: understood.declaration.batchId };
            case 'cancel':
                return await tryCancel(tx, understood, deps);
            case 'payout':
                return await tryPayout(tx, understood, deps);
        }
    }
    catch (error) {
        if (blame(error) === 'database')
            throw error;
        await tx.run(backToMark, {});
        return { kind: 'dead', reason: 'refused-by-database', detail: null };
    }
}
async function tryCancel(tx, cancel, { ledger }) {
    const { merchantId, payoutId } = cancel;
    await storeCancels(tx, ledger, [cancel]);
    const [payout] = await lockPayouts(tx, [cancel]);
    return { kind: 'cancel', merchantId, payoutId, to: payout?.state ?? null };
}
async function tryPayout(tx, arrival, { ledger, keys }) {
    const { merchantId, payoutId } = arrival.command;
    const key = { merchantId, payoutId };
    const { fresh, contradicting } = await accept(tx, ledger, keys, [{ ...arrival, traceparent: null }]);
    if (contradicting > 0)
        return { kind: 'contradicts', ...key };
    if (fresh === 0)
        return { kind: 'repeat', ...key };
    if (arrival.faults.length > 0)
        return { kind: 'rejected', ...key, faults: arrival.faults };
    const [payout] = await lockPayouts(tx, [key]);
    if (!payout)
        throw new Error(`payout ${merchantId}:${payoutId} was accepted and is not there`);
    return { kind: 'accepted', ...key, state: payout.state, reason: payout.reason };
}
