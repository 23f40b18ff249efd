import { blame, TRIES_ALONE } from './postgres.ts'

/**
 * Collects single items and passes them to the database together: group commit. A batch leaves when it holds `size`
 * items or when its first item has waited `waitMs`. At most `lanes` batches run at once; while they do, the next
 * one grows.
 *
 * `add` rejects with its whole batch only if the database as a whole is at fault. Otherwise the Batcher tries
 * halves, down to the single item, and then that item once more as `bare` makes it: without the text that is kept
 * only for people to read.
 */
export class Batcher<Item, Result> {
  readonly #work: (items: Item[]) => Promise<Result[]>
  readonly #bare: (item: Item) => Item
  readonly #size: number
  readonly #waitMs: number
  readonly #lanes: number
  #waiting: WaitingItem<Item, Result>[] = []
  #timer: NodeJS.Timeout | undefined
  #running = 0
  #idle: (() => void)[] = []

  /** `work` must return one result per item, in the same order. */
  constructor(
    options: { size: number; waitMs: number; lanes: number; bare: (item: Item) => Item },
    work: (items: Item[]) => Promise<Result[]>,
  ) {
    this.#work = work
    this.#bare = options.bare
    this.#size = options.size
    this.#waitMs = options.waitMs
    this.#lanes = options.lanes
  }

  /** Items not in any batch yet. */
  get waiting(): number {
    return this.#waiting.length
  }

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      if (this.#waiting.length >= this.#size) this.#flush()
      else this.#timer ??= setTimeout(() => this.#flush(), this.#waitMs)
    })
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    while (this.#running < this.#lanes && this.#waiting.length > 0) {
      this.#running++
      void this.#run(this.#waiting.splice(0, this.#size))
    }
  }

  async #run(batch: WaitingItem<Item, Result>[]): Promise<void> {
    await this.#settle(batch)
    this.#running--
    if (this.#waiting.length > 0) this.#flush()
    else if (this.#running === 0) for (const done of this.#idle.splice(0)) done()
  }

  /** Never rejects: each item's own promise does. */
  async #settle(batch: WaitingItem<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#work(batch.map(({ item }) => item))
      batch.forEach(({ resolve }, i) => {
        resolve(results[i] as Result)
      })
    } catch (error) {
      const [only, ...others] = batch
      if (blame(error) === 'database') {
        for (const { reject } of batch) reject(error)
      } else if (others.length > 0) {
        const middle = Math.ceil(batch.length / 2)
        await this.#settle(batch.slice(0, middle))
        await this.#settle(batch.slice(middle))
      } else if (only) {
        await this.#settleAlone(only, error)
      }
    }
  }

  async #settleAlone({ item, resolve, reject }: WaitingItem<Item, Result>, failure: unknown): Promise<void> {
    let error = failure
    for (let tries = 1; tries <= TRIES_ALONE; tries++) {
      const isLast = tries === TRIES_ALONE || blame(error) === 'data'
      try {
        const [result] = await this.#work([isLast ? this.#bare(item) : item])
        resolve(result as Result)
        return
      } catch (again) {
        error = again
        if (isLast || blame(error) === 'database') break
      }
    }
    reject(error)
  }

  /** Resolves when nothing waits and no batch runs. */
  async drain(): Promise<void> {
    this.#flush()
    if (this.#running > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }
}

type WaitingItem<Item, Result> = {
  item: Item
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}
