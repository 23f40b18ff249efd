import { openDetails } from "../ledger/details.js";
import { storeDecisions } from "../ledger/ledger.js";
import { become, change } from "../payout/transition.js";
import { DoesNotOpen } from "../platform/seal.js";
import { lockAwaitingKey } from "./sql/sealed.js";
export function openEach(candidates, keys) {
    const opened = [];
    const sealed = [];
    for (const { sealed: bytes, ...payout } of candidates) {
        try {
            opened.push({ payout, details: openDetails(payout, bytes, keys) });
        }
        catch (error) {
            if (!(error instanceof DoesNotOpen))
                throw error;
            sealed.push({ payout, keyId: error.keyId });
        }
    }
    return { opened, sealed };
}
/** Puts a payout aside, unsent, so that others go on. */
export function hold({ payout, keyId }) {
    const held = become(payout, 'held', { reason: 'details-sealed', dueAt: payout.deadline });
    const note = `the bank details were sealed with key ${keyId}, and no key of this process opens them`;
    return change(payout, held, 'VALIDATION', { note });
}
const BATCH = 500;
/**
 * Queues again what was put aside: to be called when a process starts, with keys that others may have lacked.
 * Each payout once, so that it ends even while an older process puts some aside again. Returns how many.
 */
export async function releaseHeld(ledger) {
    let count = 0;
    let last = { merchantId: '', payoutId: '' };
    for (;;) {
        const held = await ledger.db.transaction('release held', async (tx) => {
            const batch = await tx.run(lockAwaitingKey, { ...last, limit: BATCH });
            await storeDecisions(tx, ledger, batch.map(release));
            return batch;
        });
        last = held.at(-1) ?? last;
        count += held.length;
        if (held.length < BATCH)
            return count;
    }
}
function release(payout) {
    const queued = become(payout, 'queued', { ready: true, dueAt: payout.deadline });
    return change(payout, queued, 'COMMAND', { note: 'payoutd started again, and its keys are tried' });
}
