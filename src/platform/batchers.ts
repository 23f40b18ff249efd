import { Batcher } from './batcher.ts'

/** A Batcher for each key, all alike: what holds up the items of one key holds up no other's. */
export class Batchers<Item, Result> {
  readonly #make: () => Batcher<Item, Result>
  readonly #byKey = new Map<string, Batcher<Item, Result>>()

  constructor(...made: ConstructorParameters<typeof Batcher<Item, Result>>) {
    this.#make = () => new Batcher(...made)
  }

  add(key: string, item: Item): Promise<Result> {
    let batcher = this.#byKey.get(key)
    if (!batcher) {
      batcher = this.#make()
      this.#byKey.set(key, batcher)
    }
    return batcher.add(item)
  }

  async drain(): Promise<void> {
    await Promise.all([...this.#byKey.values()].map((batcher) => batcher.drain()))
  }
}
