import { fencedMerchants, storeDecisions } from "../ledger/ledger.js";
import { Batchers } from "../platform/batchers.js";
import { SharedSlots } from "../platform/shared-slots.js";
import { askingAbout } from "./control.js";
import { bare, settleHeard } from "./settlement.js";
import { lockTimers, lockToAsk } from "./sql/due.js";
/** Queries under way at once, in one process. */
const MOST_QUERIES = 64;
/** Payouts of one merchant that time moves in one turn. */
const TIMERS_OF_EACH = 50;
/** Time alone moves payouts of a merchant that is not in the settings. */
const NOBODY_TO_ASK = {
    queryAfterMs: [60_000],
    graceMs: 0,
    confirmations: 1,
    resendWhenAbsent: false,
};
/** When to look again at payouts of a merchant that is fenced. */
const LATER_MS = 60_000;
const IDLE_MS = 100;
/**
 * Looks after payouts whose time has come: lets scheduled ones go, notices ended leases and deadlines, and
 * asks the gateway about what nobody called back about. What time alone moves waits for no query, and no merchant for
 * the queries of another.
 */
export class Poller {
    #deps;
    #slots;
    #heard;
    constructor(deps) {
        this.#deps = deps;
        this.#slots = new SharedSlots(MOST_QUERIES, deps.askers.keys(), deps.log);
        this.#heard = new Batchers({ size: 200, waitMs: 5, lanes: 1, bare }, (heard) => settleHeard(heard, deps));
    }
    /** One turn of the loop; returns how many ms to wait before the next. */
    async turn() {
        const moved = await this.#takeDue((tx) => tx.run(lockTimers, { ofEach: TIMERS_OF_EACH }));
        const asked = await this.#slots.offer((rooms) => this.#takeDue((tx) => tx.run(lockToAsk, { merchantIds: [...rooms.keys()], limits: [...rooms.values()] })));
        return moved + asked > 0 ? 0 : IDLE_MS;
    }
    async drain() {
        await this.#slots.drain();
        await this.#heard.drain();
    }
    /** Returns how many payouts it changed, or asks about. */
    async #takeDue(find) {
        const { ledger, judge, tables, askers } = this.#deps;
        const { taken, toAsk, now } = await ledger.db.transaction('take due payouts', async (tx) => {
            const due = await find(tx);
            const fenced = due.length > 0 ? await fencedMerchants(tx) : new Set();
            const toAsk = [];
            const decisions = due.map((payout) => {
                const asker = askers.get(payout.merchantId);
                // It may have been sent all the same, so that it must not expire.
                if (payout.attempt === 0 && fenced.has(payout.merchantId))
                    return postpone(payout, tx.now + LATER_MS);
                const decision = judge.whenDue(payout, tables.get(payout.merchantId) ?? NOBODY_TO_ASK, tx.now);
                if (!('ask' in decision))
                    return decision;
                if (!asker)
                    return postpone(payout, tx.now + LATER_MS);
                toAsk.push(payout);
                // While it is being asked about, nobody else does: two queries, the second for the positive control.
                return postpone(payout, tx.now + 2 * asker.timeoutMs);
            });
            await storeDecisions(tx, ledger, decisions);
            return { taken: decisions.filter((each) => !('nothing' in each)).length, toAsk, now: tx.now };
        });
        for (const payout of toAsk)
            this.#slots.run(payout.merchantId, () => this.#ask(payout, now));
        return taken;
    }
    async #ask({ merchantId, payoutId, orderNo }, askedAt) {
        const asker = this.#deps.askers.get(merchantId);
        if (!asker || orderNo === null)
            return;
        try {
            const answer = await asker.query(orderNo);
            const positiveControl = await this.#control(merchantId, orderNo, asker, answer);
            const asked = { askedAt, positiveControl };
            await this.#heard.add(merchantId, {
                merchantId,
                mchOrderNo: orderNo,
                source: 'QUERY',
                answer,
                ...asked,
            });
        }
        catch (error) {
            this.#deps.log.error({ err: error, merchantId, payoutId }, 'query result not stored, will ask again');
        }
    }
    async #control(merchantId, orderNo, { settingsHash, query }, answer) {
        const { control, ledger } = this.#deps;
        if (answer.kind === 'found')
            control.found(settingsHash, orderNo);
        if (answer.kind !== 'not-found')
            return false;
        return control.holds(settingsHash, askingAbout(merchantId, query, ledger.db));
    }
}
const postpone = (payout, dueAt) => ({
    change: { before: payout, after: { ...payout, dueAt }, source: 'CLOCK', exchange: null },
});
