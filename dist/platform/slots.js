import pLimit from 'p-limit';
/** A bounded number of tasks at once, owned: `drain` waits for all of them. A task that rejects gives its slot back. */
export class Slots {
    #limit;
    #running = new Set();
    #size;
    #log;
    constructor(size, log) {
        this.#size = size;
        this.#limit = pLimit(size);
        this.#log = log;
    }
    get free() {
        return this.#size - this.#running.size;
    }
    get taken() {
        return this.#running.size;
    }
    run(task) {
        const running = this.#limit(task)
            .catch((error) => this.#log.error({ err: error }, 'a task ended with an error of its own'))
            .finally(() => this.#running.delete(running));
        this.#running.add(running);
    }
    async drain() {
        await Promise.all(this.#running);
    }
}
