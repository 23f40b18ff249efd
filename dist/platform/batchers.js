import { Batcher } from "./batcher.js";
/** A Batcher for each key, all alike: what holds up the items of one key holds up no other's. */
export class Batchers {
    #make;
    #byKey = new Map();
    constructor(...made) {
        this.#make = () => new Batcher(...made);
    }
    add(key, item) {
        let batcher = this.#byKey.get(key);
        if (!batcher) {
            batcher = this.#make();
            this.#byKey.set(key, batcher);
        }
        return batcher.add(item);
    }
    async drain() {
        await Promise.all([...this.#byKey.values()].map((batcher) => batcher.drain()));
    }
}
