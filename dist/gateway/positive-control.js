/** For how long an order that was found speaks for other queries. */
export const SPEAKS_FOR_MS = 5_000;
/**
 * The positive control: that queries find, just now and with the settings in use (address, merchant, dialect, path,
 * key), an order known to exist. Without it a "not found" may only mean that we ask in the wrong place, or that
 * nobody's orders are found at the moment.
 */
export class PositiveControl {
    #clock;
    /** What was found last, by the settings it was found with. */
    #last = new Map();
    constructor(clock) {
        this.#clock = clock;
    }
    /** To be told of every order that a query found. */
    found(settings, mchOrderNo) {
        this.#last.set(settings, { mchOrderNo, at: this.#clock.monotonic() });
    }
    /** Whether an order was found a moment ago; when not, asks about the last one that was, or any that is known. */
    async holds(settings, { known, finds }) {
        const last = this.#last.get(settings);
        if (last && this.#clock.monotonic() - last.at < SPEAKS_FOR_MS)
            return true;
        const mchOrderNo = last?.mchOrderNo ?? (await known());
        if (mchOrderNo === null || !(await finds(mchOrderNo)))
            return false;
        this.found(settings, mchOrderNo);
        return true;
    }
}
