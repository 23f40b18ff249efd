import { receiveCallbacks } from "../gateway/callback-route.js";
import { Batchers } from "../platform/batchers.js";
import { bare, settleHeard } from "./settlement.js";
export const callbackPath = (merchantId) => `/callbacks/payout/${encodeURIComponent(merchantId)}`;
/** The callback door of payouts, which tells how long callbacks wait: dispatch makes room for them. */
export class CallbackDoor {
    #deps;
    #batches;
    #slowestMs = 0;
    constructor(deps) {
        this.#deps = deps;
        this.#batches = new Batchers({ size: 500, waitMs: 4, lanes: 2, bare }, (heard) => settleHeard(heard, deps));
    }
    routes(server) {
        const { readers, answered } = this.#deps;
        const store = (merchantId, report) => this.#store(merchantId, report);
        receiveCallbacks(server, { url: '/callbacks/payout/:merchantId', readers, answered, store });
    }
    async #store(merchantId, report) {
        const began = this.#deps.clock.monotonic();
        try {
            await this.#batches.add(merchantId, {
                merchantId,
                mchOrderNo: report.mchOrderNo,
                source: 'CALLBACK',
                report,
            });
            return true;
        }
        catch (error) {
            this.#deps.log.error({ err: error, merchantId, mchOrderNo: report.mchOrderNo }, 'callback not stored');
            return false;
        }
        finally {
            const tookMs = this.#deps.clock.monotonic() - began;
            this.#slowestMs = Math.max(this.#slowestMs, tookMs);
            this.#deps.took.observe(tookMs / 1000);
        }
    }
    /** The longest that a callback waited for its commit since this was last called, in ms. */
    slowestMs() {
        const slowest = this.#slowestMs;
        this.#slowestMs = 0;
        return Math.round(slowest);
    }
    drain() {
        return this.#batches.drain();
    }
}
