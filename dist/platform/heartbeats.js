/**
 * Signs of life of whatever must go on. Each gives one as often as it gets on with its work; whoever waits because
 * there is nothing to do rests.
 */
export class Heartbeats {
    /** By name: when it gave its last sign (monotonic ms), or null while it rests. */
    #signs = new Map();
    #now;
    constructor(now = () => performance.now()) {
        this.#now = now;
    }
    /** It is at work, and has got on with it now. */
    sign(name) {
        this.#signs.set(name, this.#now());
    }
    rest(name) {
        this.#signs.set(name, null);
    }
    /** It was stopped: nobody waits for a sign of it. */
    forget(name) {
        this.#signs.delete(name);
    }
    /** By name: how many ms ago each gave its last sign; 0 while it rests. */
    silences() {
        const now = this.#now();
        return new Map([...this.#signs].map(([name, at]) => [name, at === null ? 0 : now - at]));
    }
}
