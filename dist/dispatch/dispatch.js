import { UNKEPT } from "../payout/evidence.js";
import { Batchers } from "../platform/batchers.js";
import { pause } from "../platform/lifecycle.js";
import { blame } from "../platform/postgres.js";
import { SharedSlots } from "../platform/shared-slots.js";
import { Slots } from "../platform/slots.js";
import { Balances } from "./balance.js";
import { isWorthTelling } from "./pace.js";
import { record } from "./record.js";
import { merchantsWithWork } from "./sql/purse.js";
/** A wave is marked when this many slots are free, so that few are in doubt after a crash. */
const REFILL = 16;
const LARGEST_WAVE = 64;
/** Claims under way at once in this process: fewer than the connections that it has by default. */
const MOST_CLAIMS = 4;
const BUSY_MS = 2;
/** Merchants that have something to send are looked for as often, also while others keep dispatch busy. */
const LOOK_EVERY_MS = 40;
const SHORT_TOLD_EVERY_MS = 60_000;
/**
 * Sends what is queued: claims small waves, those of several merchants at the same time, commits the intent, calls
 * apply outside any transaction, and records each answer as it comes. Merchants share nothing that one of them could
 * use up: slots, claims, answers and balances are each one's own, or bounded.
 */
export class Dispatch {
    #deps;
    #slots;
    #claims;
    #outcomes;
    #balances;
    /** By merchant: payouts whose answer is not stored yet. */
    #underWay;
    #overdue = new AbortController();
    #toldShort = new Map();
    #active = new Map();
    #lookAt = 0;
    constructor(deps) {
        this.#deps = deps;
        this.#slots = new SharedSlots(deps.inFlight, deps.senders.keys(), deps.log);
        this.#claims = new Slots(MOST_CLAIMS, deps.log);
        this.#underWay = new Map([...deps.senders.keys()].map((merchantId) => [merchantId, new Set()]));
        this.#outcomes = new Batchers({ size: 500, waitMs: 5, lanes: 2, bare }, (outcomes) => record(outcomes, deps));
        this.#balances = new Balances(deps.ledger.db, deps.clock, deps.log);
    }
    /** One turn of the loop: begins a wave of each merchant that has work and room. Returns ms to wait before the next. */
    async turn() {
        const { clock, ledger, senders, inFlight } = this.#deps;
        if (clock.monotonic() >= this.#lookAt) {
            const found = await ledger.db.run(merchantsWithWork, {});
            this.#lookAt = clock.monotonic() + LOOK_EVERY_MS;
            for (const { merchantId } of found)
                if (senders.has(merchantId) && !this.#active.has(merchantId))
                    this.#active.set(merchantId, { claiming: false, failures: 0, restUntil: 0 });
        }
        const share = Math.ceil(inFlight / Math.max(1, this.#active.size));
        for (const [merchantId, turn] of this.#active) {
            if (turn.claiming || clock.monotonic() < turn.restUntil)
                continue;
            const held = this.#slots.held(merchantId);
            const room = Math.min(this.#slots.room(merchantId), share - held);
            if (room < Math.min(REFILL, Math.ceil((held + room) / 2)) || room === 0)
                continue;
            this.#beginWave(merchantId, turn, Math.min(room, LARGEST_WAVE));
        }
        return this.#active.size > 0 ? BUSY_MS : Math.max(BUSY_MS, this.#lookAt - clock.monotonic());
    }
    /** Its slots are taken before it is known how many payouts there are: another claim may be under way. */
    #beginWave(merchantId, turn, atMost) {
        turn.claiming = true;
        this.#slots.take(merchantId, atMost);
        this.#claims.run(async () => {
            try {
                await this.#wave(merchantId, turn, atMost);
            }
            finally {
                turn.claiming = false;
            }
        });
    }
    /** Never rejects: a merchant whose claim fails rests for a while, and no other does. */
    async #wave(merchantId, turn, atMost) {
        const { clock, log } = this.#deps;
        let claimed;
        const claimedAt = clock.monotonic();
        try {
            claimed = await this.#claim(merchantId, atMost);
            turn.failures = 0;
        }
        catch (error) {
            const retryInMs = Math.min(5_000, 100 * 2 ** turn.failures);
            if (turn.failures++ === 0)
                log.error({ err: error, merchantId, retryInMs }, 'claim failed, will try again');
            turn.restUntil = clock.monotonic() + retryInMs;
            return;
        }
        finally {
            this.#slots.giveBack(merchantId, atMost);
        }
        const taken = this.#sendWave(merchantId, claimed, claimedAt);
        if (taken === atMost || claimed.gate.closed === 'locked')
            return;
        this.#active.delete(merchantId);
        if (taken > 0)
            this.#lookAt = 0;
    }
    /** Waits for every call under way and for its answer to be stored; `overdue` ends the storing. */
    async drain(overdue) {
        overdue.addEventListener('abort', () => this.#overdue.abort(), { once: true });
        await this.#claims.drain();
        await this.#slots.drain();
        await this.#balances.drain();
        await this.#outcomes.drain();
    }
    /** Tells in the log, one line each, the payouts that a process which ends now leaves to their leases. */
    tellAbandoned() {
        for (const payout of [...this.#underWay.values()].flatMap((payouts) => [...payouts])) {
            const { merchantId, payoutId, orderNo, attempt, dueAt } = payout;
            this.#deps.log.warn({ merchantId, payoutId, mchOrderNo: orderNo, attempt, leaseUntil: dueAt && new Date(dueAt) }, 'apply call abandoned: unless a callback comes first, the payout becomes unknown when its lease ends, ' +
                'and the gateway is asked about it');
        }
    }
    #claim(merchantId, atMost) {
        const { claim, ledger, owner, sealing, senders } = this.#deps;
        const { leaseMs, limits } = senders.get(merchantId);
        return claim(ledger, { merchantId, atMost, owner, leaseMs, limits, sealing });
    }
    /** Returns how many payouts are no longer queued. */
    #sendWave(merchantId, claimed, claimedAt) {
        const { wave, sealed, gate, purse, shortOf } = claimed;
        const sender = this.#deps.senders.get(merchantId);
        if (gate.askBalance || shortOf)
            this.#balances.ask(merchantId, sender.balance);
        if (shortOf)
            this.#tellShort(merchantId, shortOf);
        for (const each of sealed)
            this.#tellSealed(each);
        const sendBefore = claimedAt + sender.leaseMs - sender.sendTimeoutMs;
        if (purse)
            for (const each of wave)
                this.#send(each, sender, sendBefore, purse);
        return wave.length + sealed.length;
    }
    #tellSealed({ payout: { merchantId, payoutId }, keyId }) {
        this.#deps.log.error({ merchantId, payoutId, keyId }, 'bank details do not open, so the payout is held, unsent: add the key that sealed it to ENCRYPTION_KEYS, ' +
            'and start payoutd again');
    }
    /** Once a minute: every claim finds it anew. */
    #tellShort(merchantId, { payoutId }) {
        const { clock, log } = this.#deps;
        const now = clock.monotonic();
        if (now < (this.#toldShort.get(merchantId) ?? 0))
            return;
        this.#toldShort.set(merchantId, now + SHORT_TOLD_EVERY_MS);
        log.warn({ merchantId, payoutId }, 'the balance does not cover the next payout: it waits');
    }
    #send(claimed, sender, sendBefore, found) {
        const { merchantId, payoutId, attempt } = claimed.payout;
        const underWay = this.#underWayOf(merchantId).add(claimed.payout);
        this.#slots.run(merchantId, async () => {
            try {
                const answer = await this.#apply(claimed, sender, sendBefore);
                await this.#keep({ merchantId, payoutId, attempt, answer, tell: isWorthTelling(answer, found) });
            }
            finally {
                if (!this.#overdue.signal.aborted)
                    underWay.delete(claimed.payout);
            }
        });
    }
    #underWayOf(merchantId) {
        return this.#underWay.get(merchantId);
    }
    async #apply({ payout, details }, sender, sendBefore) {
        const { clock, maySend, answered, took } = this.#deps;
        const began = clock.monotonic();
        const answer = await sender.apply(payout, details, () => maySend(clock.monotonic(), sendBefore));
        took.observe((clock.monotonic() - began) / 1000);
        answered.inc({ merchant: payout.merchantId, answer: answer.kind });
        return answer;
    }
    /**
     * Stores an answer, for as long as the database is away: it may be the only one there will be. Once the lease has
     * ended others look after the payout, and the answer still counts as evidence. An answer that the database refuses
     * on its own is not kept.
     */
    async #keep(outcome) {
        const { merchantId, payoutId } = outcome;
        for (let failures = 0; !this.#overdue.signal.aborted; failures++) {
            try {
                await this.#outcomes.add(outcome.merchantId, outcome);
                return;
            }
            catch (error) {
                if (blame(error) !== 'database') {
                    this.#deps.log.error({ err: error, merchantId, payoutId }, 'the database refuses this answer: the payout becomes unknown when its lease ends, and the gateway is asked');
                    return;
                }
                this.#deps.log.error({ err: error, merchantId, payoutId }, 'answer not stored, trying again');
                await pause(Math.min(5_000, 100 * 2 ** failures), this.#overdue.signal);
            }
        }
    }
}
/** What an answer settles, without what is only kept to be read. */
function bare({ answer, ...outcome }) {
    return {
        ...outcome,
        answer: { ...answer, ...('message' in answer ? { message: '' } : {}), exchange: UNKEPT },
    };
}
