import { keyTrouble } from "../key-proofs.js";
import { storedProofs } from "../sql/key-proofs.js";
import { good, wrong } from "./examine.js";
import { awaitingKey } from "./sql/awaiting-key.js";
export const keyChecks = (db, keys) => [
    {
        name: 'keys',
        needs: ['migrations'],
        run: async () => judgeKeys(await db.run(storedProofs, {}), keys),
    },
    {
        name: 'sealed payouts',
        needs: ['migrations'],
        run: async () => judgeAwaiting(await db.run(awaitingKey, {})),
    },
];
/** Leaves no proof of its own: that is for the process that uses the keys. */
export function judgeKeys(proofs, keys) {
    if (proofs.length === 0)
        return good('no payoutd has used any yet');
    const trouble = keyTrouble(proofs, keys);
    return trouble ? { state: 'wrong', ...trouble } : good('they are those that were in use before');
}
export function judgeAwaiting(awaiting) {
    if (awaiting.length === 0)
        return good('no payout waits for a key');
    const sentences = awaiting.map(({ merchantId, keyId, count }) => `${count} ${count === 1 ? 'payout' : 'payouts'} of merchant ${merchantId} ${count === 1 ? 'waits' : 'wait'} for key ${keyId}`);
    return wrong(sentences.join('; '), 'add the key that sealed them to ENCRYPTION_KEYS, and start payoutd serve again');
}
