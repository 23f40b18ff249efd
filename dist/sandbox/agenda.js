/** Several things that fall due within this time are handed over together, and share one commit. */
const TICK_MS = 2;
/** What is due when. Hands over whatever has fallen due, earliest first, in one list. */
export class Agenda {
    #clock;
    #run;
    /** A binary heap: each appointment is no later than the two below it. */
    #heap = [];
    #timer;
    #timerAt = Number.POSITIVE_INFINITY;
    #stopped = false;
    constructor(clock, run) {
        this.#clock = clock;
        this.#run = run;
        clock.onAdvance(() => this.#wake());
    }
    add(at, what) {
        this.#heap.push({ at, what });
        this.#rise(this.#heap.length - 1);
        this.#wakeFor(at);
    }
    stop() {
        this.#stopped = true;
        clearTimeout(this.#timer);
    }
    #wakeFor(at) {
        if (this.#stopped || at >= this.#timerAt)
            return;
        clearTimeout(this.#timer);
        this.#timerAt = at;
        const wait = Math.min(Math.max(at - this.#clock.now(), TICK_MS), 2 ** 31 - 1);
        this.#timer = setTimeout(() => this.#wake(), wait);
    }
    #wake() {
        if (this.#stopped)
            return;
        this.#timerAt = Number.POSITIVE_INFINITY;
        const now = this.#clock.now();
        const due = [];
        while (this.#heap[0] && this.#heap[0].at <= now)
            due.push(this.#takeFirst());
        try {
            if (due.length > 0)
                this.#run(due);
        }
        finally {
            if (this.#heap[0])
                this.#wakeFor(this.#heap[0].at);
        }
    }
    #takeFirst() {
        const first = this.#heap[0];
        const last = this.#heap.pop();
        if (this.#heap.length > 0) {
            this.#heap[0] = last;
            this.#sink(0);
        }
        return first.what;
    }
    #rise(from) {
        let i = from;
        while (i > 0) {
            const parent = (i - 1) >> 1;
            if (this.#at(parent) <= this.#at(i))
                return;
            this.#swap(i, parent);
            i = parent;
        }
    }
    #sink(from) {
        let i = from;
        for (;;) {
            const left = 2 * i + 1;
            const least = this.#at(left + 1) < this.#at(left) ? left + 1 : left;
            if (this.#at(least) >= this.#at(i))
                return;
            this.#swap(i, least);
            i = least;
        }
    }
    #at(i) {
        return this.#heap[i]?.at ?? Number.POSITIVE_INFINITY;
    }
    #swap(i, j) {
        const held = this.#heap[i];
        this.#heap[i] = this.#heap[j];
        this.#heap[j] = held;
    }
}
