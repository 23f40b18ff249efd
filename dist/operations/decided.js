import { lockPayouts, storeDecisions } from "../ledger/ledger.js";
/** Locks payouts, by their payoutIds; those that nobody knows are not there. */
export async function lockById(tx, { merchantId, payoutIds }) {
    const keys = payoutIds.map((payoutId) => ({ merchantId, payoutId }));
    return new Map((await lockPayouts(tx, keys)).map((payout) => [payout.payoutId, payout]));
}
/** Stores what was decided: state, history and messages together. Returns the outcomes. */
export async function storeDecided(tx, ledger, decided) {
    await storeDecisions(tx, ledger, decided.map(({ decision }) => decision));
    return outcomesOf(decided);
}
export const outcomesOf = (decided) => decided.map(({ outcome }) => outcome);
