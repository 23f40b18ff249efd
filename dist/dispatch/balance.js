import { beforeAsking, keepBalance } from "./sql/purse.js";
/** A process asks for one merchant's balance at most this often. */
const EVERY_MS = 500;
/** Keeps the balance snapshots that all processes share. */
export class Balances {
    #db;
    #clock;
    #log;
    #asked = new Map();
    /** Questions without an answer: one of each merchant, so that a gateway that hangs keeps no other from being asked. */
    #asking = new Map();
    constructor(db, clock, log) {
        this.#db = db;
        this.#clock = clock;
        this.#log = log;
    }
    /**
     * Asks the gateway and keeps the answer, unless it is being asked or was asked just now. Never rejects: without an
     * answer the old snapshot stands.
     */
    ask(merchantId, query) {
        const now = this.#clock.monotonic();
        if (this.#asking.has(merchantId) || now < (this.#asked.get(merchantId) ?? 0) + EVERY_MS)
            return;
        this.#asked.set(merchantId, now);
        const asking = this.#ask(merchantId, query).finally(() => this.#asking.delete(merchantId));
        this.#asking.set(merchantId, asking);
    }
    async drain() {
        await Promise.all(this.#asking.values());
    }
    async #ask(merchantId, query) {
        try {
            const [mark] = await this.#db.run(beforeAsking, { merchantId });
            const answer = await query();
            if (answer.kind === 'unknown') {
                this.#log.warn({ merchantId, reason: answer.reason }, 'the gateway did not tell the balance, will ask again');
                return;
            }
            if (mark)
                await this.#db.write('keep balance', keepBalance, {
                    merchantId,
                    available: answer.availableAmount,
                    ...mark,
                });
        }
        catch (error) {
            this.#log.error({ err: error, merchantId }, 'balance not stored, will ask again');
        }
    }
}
