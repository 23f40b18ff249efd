import { resealDetails } from "../ledger/details.js";
import { pause } from "../platform/lifecycle.js";
import { DoesNotOpen } from "../platform/seal.js";
import { storedProofs } from "./sql/key-proofs.js";
import { lockSealed, replaceSealed, retireProofs, sealedWith, waitingDeadLetters, } from "./sql/rotate.js";
/** Small enough that a rotation of several stays unnoticed, and a transaction within milliseconds. */
const AT_ONCE = 500;
/**
 * Seals the bank details of every payout with the current key, where another one sealed them. Needs no memory:
 * after an interruption the same call goes on, because what is done is passed over.
 */
export async function rotateKeys(db, keys, options) {
    const { rate, clock, signal, onProgress } = options;
    const unopened = new Map();
    let lookedAt = 0;
    let resealed = 0;
    for await (const page of pages(db)) {
        const began = clock.monotonic();
        const old = page.filter(({ keyId }) => keyId !== keys.current);
        const { opened, closed } = await reseal(db, keys, old);
        for (const keyId of closed)
            count(unopened, keyId, 1);
        lookedAt += page.length;
        resealed += opened;
        onProgress(lookedAt, resealed);
        if (rate !== null && opened > 0) {
            await pause(Math.max(0, (opened / rate) * 1_000 - (clock.monotonic() - began)), signal);
        }
        if (signal.aborted)
            return { resealed, unopened, interrupted: true };
    }
    return { resealed, unopened, interrupted: false };
}
/** What the keys seal in the database: bank details, and dead letters on their way to Kafka. */
export async function censusOfKeys(db) {
    const census = new Map();
    for await (const page of pages(db))
        for (const { keyId } of page)
            count(census, keyId, 1);
    for (const { keyId, count: letters } of await db.run(waitingDeadLetters, {}))
        count(census, keyId, letters);
    return census;
}
/** The ids of former keys that have been in use and seal nothing in the database any more. */
export async function unusedKeys(db, { current }, census) {
    const proofs = await db.run(storedProofs, {});
    return proofs.map(({ keyId }) => keyId).filter((id) => id !== 0 && id !== current && !census.has(id));
}
/** Forgets that keys were ever in use: payoutd starts without them from now on. */
export async function retireKeys(db, keyIds) {
    await db.write('retire keys', retireProofs, { keyIds });
}
async function* pages(db) {
    let last = { merchantId: '', payoutId: '' };
    for (;;) {
        const page = await db.run(sealedWith, { ...last, limit: AT_ONCE });
        const end = page.at(-1);
        if (!end)
            return;
        yield page;
        last = end;
    }
}
/** How many were sealed anew, and the key ids of those that do not open. */
async function reseal(db, keys, old) {
    if (old.length === 0)
        return { opened: 0, closed: [] };
    return db.transaction('rotate keys', async (tx) => {
        const closed = [];
        const fresh = (await tx.run(lockSealed, keysOf(old))).flatMap(({ sealed, ...key }) => {
            try {
                return [{ ...key, sealed: resealDetails(key, sealed, keys) }];
            }
            catch (error) {
                if (!(error instanceof DoesNotOpen))
                    throw error;
                closed.push(error.keyId);
                return [];
            }
        });
        await tx.run(replaceSealed, { ...keysOf(fresh), sealeds: fresh.map(({ sealed }) => sealed) });
        return { opened: fresh.length, closed };
    });
}
const keysOf = (payouts) => ({
    merchantIds: payouts.map(({ merchantId }) => merchantId),
    payoutIds: payouts.map(({ payoutId }) => payoutId),
});
function count(census, keyId, by) {
    census.set(keyId, (census.get(keyId) ?? 0) + by);
}
