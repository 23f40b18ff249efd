import { storeDecisions } from "../ledger/ledger.js";
import { paise } from "../payout/money.js";
import { become } from "../payout/transition.js";
import { covered, gate, rateAfter } from "./pace.js";
import { hold, openEach } from "./sealed.js";
import { lockCandidates, openAttempts } from "./sql/claim.js";
import { lockFreePurse, spend, traffic } from "./sql/purse.js";
/**
 * Takes the next payouts of one merchant, as many as its limits and its balance allow, and commits the
 * intent to send them. Under the lock of the merchant's row: all processes together keep its limits. Nobody waits for
 * that lock with a connection in hand, which other merchants' claims need.
 */
export async function claim(ledger, options) {
    const { merchantId, atMost, owner, leaseMs, limits, sealing } = options;
    return ledger.db.transaction('claim', async (tx) => {
        const [purse] = await tx.run(lockFreePurse, { merchantId });
        if (!purse)
            return { ...NOTHING, gate: LOCKED, purse: null };
        const [{ inFlight, lagMs }] = (await tx.run(traffic, { merchantId }));
        const open = gate(purse, Number(inFlight), lagMs, limits, tx.now);
        if (open.room === 0)
            return { ...NOTHING, gate: open, purse };
        const { opened, sealed } = await next(tx, merchantId, Math.min(open.room, atMost), sealing);
        await storeDecisions(tx, ledger, sealed.map(hold));
        const { count, cost } = covered(opened.map(({ payout }) => payout.amount), purse);
        const shortOf = opened[count]?.payout ?? null;
        if (count === 0)
            return { wave: [], sealed, gate: open, purse, shortOf };
        const leaseUntil = tx.now + leaseMs;
        const wave = opened.slice(0, count).map((each) => intend(each, leaseUntil));
        const decisions = wave.map(({ before, after }) => ({
            change: { before, after, source: 'COMMAND', exchange: null },
        }));
        await storeDecisions(tx, ledger, decisions);
        await tx.run(openAttempts, {
            merchantId,
            payoutIds: wave.map(({ after }) => after.payoutId),
            attempts: wave.map(({ after }) => after.attempt),
            orderNos: wave.map(({ after }) => after.orderNo),
            owner,
            leaseUntil,
        });
        const rateNext = rateAfter(purse.rateNext, limits.ratePerSecond, count, tx.now);
        await tx.run(spend, { merchantId, cost, rateNext });
        return {
            wave: wave.map(({ after, details }) => ({ payout: after, details })),
            sealed,
            gate: open,
            purse,
            shortOf,
        };
    });
}
const NOTHING = { wave: [], sealed: [], shortOf: null };
const LOCKED = { room: 0, spendable: paise(0), askBalance: false, closed: 'locked' };
function intend({ payout: before, details }, leaseUntil) {
    const after = become(before, 'submitting', { attempt: before.attempt + 1, dueAt: leaseUntil });
    return { before, after, details };
}
/** What does not open may be many, with the room of a canary: this many are looked at once one is found. */
const SWEEP = 500;
/** The next payouts, at most `limit` that open; with what lies between them and does not. */
async function next(tx, merchantId, limit, sealing) {
    const few = openEach(await tx.run(lockCandidates, { merchantId, limit }), sealing);
    if (few.sealed.length === 0)
        return few;
    const { opened, sealed } = openEach(await tx.run(lockCandidates, { merchantId, limit: SWEEP }), sealing);
    return { opened: opened.slice(0, limit), sealed };
}
