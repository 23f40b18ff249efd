/** A clock that can be put forward, so that whoever waits for something need not. */
export class DrivenClock {
    #clock;
    #sleepers = [];
    #aheadMs = 0;
    constructor(clock) {
        this.#clock = clock;
    }
    now() {
        return this.#clock.now() + this.#aheadMs;
    }
    /** Not put forward: how long something took is not what anybody waits for. */
    monotonic() {
        return this.#clock.monotonic();
    }
    /** Puts it forward by `ms`, and wakes all sleepers before it returns. */
    advance(ms) {
        this.#aheadMs += ms;
        for (const wake of this.#sleepers)
            wake();
    }
    /** `wake` is called whenever the clock was put forward. */
    onAdvance(wake) {
        this.#sleepers.push(wake);
    }
}
