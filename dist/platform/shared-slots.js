import { Slots } from "./slots.js";
/** A quarter of all slots is reserved: each owner has an equal part of it to itself. */
const RESERVED = 1 / 4;
/**
 * A bounded number of tasks at once, of several owners. Each owner has slots of its own, one at least, which it
 * always finds free whatever the others hold; the rest is for all. An only owner may hold every slot. Owners beyond
 * the number of slots have one each all the same.
 */
export class SharedSlots {
    #running;
    #size;
    #own;
    #held;
    /** Slots that are held, or kept free for their owner. */
    #used;
    constructor(size, owners, log) {
        this.#running = new Slots(Number.POSITIVE_INFINITY, log);
        this.#held = new Map([...owners].map((owner) => [owner, 0]));
        this.#size = size;
        this.#own = Math.max(1, Math.floor((size * RESERVED) / Math.max(1, this.#held.size)));
        this.#used = this.#own * this.#held.size;
    }
    held(owner) {
        return this.#held.get(owner) ?? 0;
    }
    /** How many more this owner may take now. */
    room(owner) {
        if (!this.#held.has(owner))
            return 0;
        const own = Math.max(0, this.#own - this.held(owner));
        return own + Math.max(0, this.#size - this.#used);
    }
    /** Holds `count` slots until they are given back: for tasks that are yet to be found. */
    take(owner, count) {
        const before = this.held(owner);
        this.#held.set(owner, before + count);
        this.#used += Math.max(before + count, this.#own) - Math.max(before, this.#own);
    }
    giveBack(owner, count) {
        this.take(owner, -count);
    }
    /** Holds whatever each owner may take now while tasks are looked for: `find` is given the owners that have room. */
    async offer(find) {
        const rooms = new Map();
        for (const owner of this.#held.keys()) {
            const room = this.room(owner);
            if (room === 0)
                continue;
            this.take(owner, room);
            rooms.set(owner, room);
        }
        try {
            return await find(rooms);
        }
        finally {
            for (const [owner, room] of rooms)
                this.giveBack(owner, room);
        }
    }
    /** Runs a task in a slot of its owner, which gets it back also where the task rejects. */
    run(owner, task) {
        this.take(owner, 1);
        this.#running.run(() => task().finally(() => this.giveBack(owner, 1)));
    }
    drain() {
        return this.#running.drain();
    }
}
