import { pause } from "../platform/lifecycle.js";
/** Lets at most so many through in a second, evenly. */
export class Pace {
    #everyMs;
    #clock;
    #next = 0;
    constructor(perSecond, clock) {
        this.#everyMs = 1000 / perSecond;
        this.#clock = clock;
    }
    /** Resolves when it is the caller's turn, or the signal is aborted. */
    async turn(signal) {
        const now = this.#clock.monotonic();
        const at = Math.max(now, this.#next);
        this.#next = at + this.#everyMs;
        if (at > now)
            await pause(at - now, signal);
    }
}
