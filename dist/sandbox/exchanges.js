const KEPT = 1000;
/**
 * The last 1,000 exchanges, in memory and by reference: nothing is made of them before somebody looks, so
 * that keeping one costs next to nothing.
 */
export class Exchanges {
    #ring = [];
    #count = 0;
    keep(exchange) {
        this.#ring[this.#count++ % KEPT] = exchange;
    }
    /** The exchange of this number, counted from 1, if it is still kept. */
    numbered(number) {
        return number > this.#count - KEPT && number <= this.#count ? this.#ring[(number - 1) % KEPT] : undefined;
    }
    /** Newest first, each with its number. */
    *latest() {
        for (let number = this.#count; number > 0; number--) {
            const exchange = this.numbered(number);
            if (!exchange)
                return;
            yield [number, exchange];
        }
    }
}
