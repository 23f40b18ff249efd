import { json } from "../ledger/ledger.js";
import { compare } from "../oracle/compare.js";
import { askEach } from "./ask-each.js";
import { askAgain, keepAnswer, listPayouts, payoutHere, progress, unasked } from "./sql/payouts.js";
import { begin, finish, reconciliationById, unfinished } from "./sql/reconciliations.js";
/** How often a payout is asked about that the gateway does not tell of, within one run. */
const PASSES = 3;
/** How often a payout is looked at again that moves while it is asked about. */
const LOOKS = 3;
/** The run that was interrupted, to go on with, by its id; null: there is none. */
export const findReconciliation = async (db, reconciliationId) => (await db.run(reconciliationById, { reconciliationId }))[0] ?? null;
/** The run about this period that was interrupted, or else a new one, for which the balance is asked. */
export async function openReconciliation(period, { db, ids, balance }) {
    const [interrupted] = await db.run(unfinished, period);
    if (interrupted)
        return interrupted;
    const told = await balance();
    const [begun] = await db.write('begin reconciliation', begin, {
        ...period,
        reconciliationId: ids.uuid(),
        balance: told.kind === 'balance' ? told.amount : null,
    });
    if (!begun)
        throw new Error('a reconciliation was begun and is not there');
    return begun;
}
/**
 * Asks the gateway about every payout of the run that it has not told of yet, compares and keeps the differences; where
 * they are to be settled, about those that differ once more. A run of which everything was told is finished; any other
 * goes on when it is called again.
 */
export async function askAll(run, deps) {
    const { db } = deps;
    const { reconciliationId, merchantId, periodFrom: from, periodTo: to } = run;
    if (deps.settle)
        await db.write('ask again', askAgain, { reconciliationId });
    else if (run.finishedAt !== null)
        return { ending: 'all-asked', inVain: 0, run };
    await db.write('list payouts to reconcile', listPayouts, { reconciliationId, merchantId, from, to });
    const tally = await tallyOf(run, deps);
    const inVain = new Set();
    const ending = await askEach({
        ...deps,
        passes: PASSES,
        betweenMs: 0,
        waiting: (after, limit) => db.run(unasked, { reconciliationId, after, limit }),
        async ask(payoutId) {
            if (!(await askOne(run, payoutId, deps))) {
                inVain.add(payoutId);
                return 'silent';
            }
            inVain.delete(payoutId);
            deps.onProgress(++tally.asked, tally.listed);
            return 'told';
        },
    });
    const [finished] = ending === 'all-asked' && tally.asked === tally.listed
        ? await db.write('finish reconciliation', finish, { reconciliationId })
        : [];
    return { ending, inVain: inVain.size, run: finished ?? run };
}
async function tallyOf({ reconciliationId }, { db, onProgress }) {
    const [counted] = await db.run(progress, { reconciliationId });
    const { asked, listed } = counted ?? { asked: 0, listed: 0 };
    onProgress(asked, listed);
    return { asked, listed };
}
/** Whether the gateway told anything of it. */
async function askOne(run, payoutId, deps) {
    const { db, settle } = deps;
    const { reconciliationId, merchantId } = run;
    const read = () => here(db, merchantId, payoutId);
    const { payout, answer } = await lookOnBothSides(read, deps);
    if (answer.kind === 'unknown')
        return false;
    const there = answer.kind === 'found' ? answer.report : null;
    let differences = compare(payout, there);
    let settled = false;
    if (differences.length > 0 && answer.kind === 'found' && settle) {
        await settle(payout.orderNo, answer);
        differences = compare(await read(), there);
        settled = differences.length === 0;
    }
    await db.write('keep reconciled payout', keepAnswer, {
        reconciliationId,
        payoutId,
        status: there?.status ?? null,
        amount: there?.amount ?? null,
        fee: there?.fee ?? null,
        differences: json(differences),
        settled,
    });
    return true;
}
/** What moves while it is asked about would differ from an answer of before. */
async function lookOnBothSides(read, { query }) {
    for (let look = 1;; look++) {
        const before = await read();
        const answer = await query(before.orderNo);
        const payout = await read();
        if (payout.version === before.version || look === LOOKS)
            return { payout, answer };
    }
}
async function here(db, merchantId, payoutId) {
    const [payout] = await db.run(payoutHere, { merchantId, payoutId });
    if (!payout)
        throw new Error(`payout ${merchantId}:${payoutId} was listed and is gone`);
    return payout;
}
