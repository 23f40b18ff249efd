import { Batchers } from "../platform/batchers.js";
import { SharedSlots } from "../platform/shared-slots.js";
import { bare, settleHeard } from "./settlement.js";
import { someKnownPayin } from "./sql/control.js";
import { lockEndedLeases, lockToAsk } from "./sql/due.js";
import { storePayins } from "./store.js";
import { change } from "./transition.js";
import { whenDue } from "./when-due.js";
/** Queries under way at once, in one process. */
const MOST_QUERIES = 16;
/** When to look again at payins of a merchant that is not in the settings. */
const STRANGER_MS = 60_000;
/** Creations whose lease ended that one turn takes. */
const MOST_LEASES = 100;
const IDLE_MS = 500;
/**
 * Looks after payins whose time has come: notices ended leases, and asks about what nobody called back about. An ended
 * lease waits for no query, and no merchant for the queries of another.
 */
export class PayinPoller {
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
        const moved = await this.#takeDue((tx) => tx.run(lockEndedLeases, { limit: MOST_LEASES }));
        const asked = await this.#slots.offer((rooms) => this.#takeDue((tx) => tx.run(lockToAsk, { merchantIds: [...rooms.keys()], limits: [...rooms.values()] })));
        return moved + asked > 0 ? 0 : IDLE_MS;
    }
    async drain() {
        await this.#slots.drain();
        await this.#heard.drain();
    }
    /** Returns how many payins it changed, or asks about. */
    async #takeDue(find) {
        const { ledger, terms, askers } = this.#deps;
        const { taken, toAsk, now } = await ledger.db.transaction('take due payins', async (tx) => {
            const due = await find(tx);
            const toAsk = [];
            const decisions = due.map((payin) => {
                const asker = askers.get(payin.merchantId);
                const table = terms.get(payin.merchantId)?.table;
                if (!table || !asker)
                    return postpone(payin, tx.now + STRANGER_MS);
                const decision = whenDue(payin, table, tx.now);
                if (!('ask' in decision))
                    return decision;
                toAsk.push(payin);
                // While it is being asked about, nobody else does: two queries, the second for the positive control.
                return postpone(payin, tx.now + 2 * asker.timeoutMs);
            });
            await storePayins(tx, ledger, decisions);
            return { taken: decisions.filter((each) => !('nothing' in each)).length, toAsk, now: tx.now };
        });
        for (const payin of toAsk)
            this.#slots.run(payin.merchantId, () => this.#ask(payin, now));
        return taken;
    }
    async #ask(payin, askedAt) {
        const { merchantId, payinId } = payin;
        const asker = this.#deps.askers.get(merchantId);
        try {
            const answer = await asker.query(payinId);
            const positiveControl = await this.#holds(payin, asker, answer);
            await this.#heard.add(merchantId, {
                merchantId,
                payinId,
                source: 'QUERY',
                answer,
                askedAt,
                positiveControl,
            });
        }
        catch (error) {
            this.#deps.log.error({ err: error, merchantId, payinId }, 'query result not stored, will ask again');
        }
    }
    async #holds({ merchantId, payinId }, { query }, answer) {
        const { control, ledger } = this.#deps;
        if (answer.kind === 'known')
            control.found(merchantId, payinId);
        if (answer.kind !== 'not-found')
            return false;
        return control.holds(merchantId, {
            known: async () => (await ledger.db.run(someKnownPayin, { merchantId }))[0]?.payinId ?? null,
            finds: async (known) => (await query(known)).kind === 'known',
        });
    }
}
const postpone = (payin, dueAt) => change(payin, { ...payin, dueAt }, 'CLOCK', null);
