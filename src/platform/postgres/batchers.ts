import { Batcher, type BatcherOptions } from './batcher.ts'

/** One Batcher per key, all alike: whatever blocks the items of one key does not block another's. */
export class Batchers<Item, Result> {
  readonly #make: (key: string) => Batcher<Item, Result>
  readonly #byKey = new Map<string, Batcher<Item, Result>>()

  /** `work` gets the key of its items. */
  constructor(options: BatcherOptions<Item>, work: (items: Item[], key: string) => Promise<Result[]>) {
    this.#make = (key) => new Batcher(options, (items) => work(items, key))
  }

  add(key: string, item: Item): Promise<Result> {
    let batcher = this.#byKey.get(key)
    if (!batcher) {
      batcher = this.#make(key)
      this.#byKey.set(key, batcher)
    }
    return batcher.add(item)
  }

  async drain(): Promise<void> {
    await Promise.all([...this.#byKey.values()].map((batcher) => batcher.drain()))
  }
}
