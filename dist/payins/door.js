import { receiveCallbacks } from "../gateway/callback-route.js";
import { Batchers } from "../platform/batchers.js";
import { bare, settleHeard } from "./settlement.js";
export const payinCallbackPath = (merchantId) => `/callbacks/payin/${encodeURIComponent(merchantId)}`;
/** The callback door of payins. */
export class PayinDoor {
    #deps;
    #batches;
    constructor(deps) {
        this.#deps = deps;
        this.#batches = new Batchers({ size: 500, waitMs: 4, lanes: 1, bare }, (heard) => settleHeard(heard, deps));
    }
    routes(server) {
        const { readers, answered } = this.#deps;
        const store = (merchantId, report) => this.#store(merchantId, report);
        receiveCallbacks(server, { url: '/callbacks/payin/:merchantId', readers, answered, store });
    }
    async #store(merchantId, report) {
        try {
            await this.#batches.add(merchantId, {
                merchantId,
                payinId: report.mchOrderNo,
                source: 'CALLBACK',
                report,
            });
            return true;
        }
        catch (error) {
            this.#deps.log.error({ err: error, merchantId, payinId: report.mchOrderNo }, 'callback not stored');
            return false;
        }
    }
    drain() {
        return this.#batches.drain();
    }
}
