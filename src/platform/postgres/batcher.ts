import { blame, isOfSomeRows, TRIES_ALONE } from './faults.ts'

/** A batch of so many is large. */
const LARGE = 8
/** Enough to find one locked row among 500. Each may wait for locks. */
const MOST_HALVINGS = 10

/**
 * `about`: items about different things do not wait for each other's locks, and of those about one thing none is stored after an
 * earlier one that must wait.
 */
export type BatcherOptions<Item> = {
  size: number
  waitMs: number
  bare: (item: Item) => Item
  about?: (item: Item) => string
}

/**
 * Collects single items and passes them to the database together: group commit. A batch leaves when it holds `size`
 * items or when its first item has waited `waitMs`, or three times as long if the one before it was large: under load a few more items
 * cost less than a transaction. While one runs, the next one grows.
 *
 * `add` rejects with its whole batch if the database is at fault. Otherwise the Batcher tries halves, down to the single
 * item; with `about` also where rows are locked, but only so often. If its data is at fault, the item is tried
 * once more as `bare` makes it: without the text that is kept only for people to read.
 */
export class Batcher<Item, Result> {
  readonly #work: (items: Item[]) => Promise<Result[]>
  readonly #bare: (item: Item) => Item
  readonly #about: ((item: Item) => string) | undefined
  readonly #size: number
  readonly #waitMs: number
  #waiting: WaitingItem<Item, Result>[] = []
  #timer: NodeJS.Timeout | undefined
  #isRunning = false
  /** How many items the latest batch had. */
  #latest = 0
  #idle: (() => void)[] = []

  /** `work` must return one result per item, in the same order. */
  constructor(options: BatcherOptions<Item>, work: (items: Item[]) => Promise<Result[]>) {
    this.#work = work
    this.#bare = options.bare
    this.#about = options.about
    this.#size = options.size
    this.#waitMs = options.waitMs
  }

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      this.#flushSoon()
    })
  }

  #flushSoon(): void {
    if (this.#waiting.length >= this.#size) this.#flush()
    else
      this.#timer ??= setTimeout(() => this.#flush(), this.#latest < LARGE ? this.#waitMs : 3 * this.#waitMs)
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (!this.#isRunning && this.#waiting.length > 0) void this.#run(this.#waiting.splice(0, this.#size))
  }

  async #run(batch: WaitingItem<Item, Result>[]): Promise<void> {
    this.#isRunning = true
    this.#latest = batch.length
    await this.#settle(batch, { halvings: 0, refused: new Map() })
    this.#isRunning = false
    if (this.#waiting.length > 0) this.#flushSoon()
    else for (const done of this.#idle.splice(0)) done()
  }

  /** Never rejects: each item's own promise does. */
  async #settle(all: WaitingItem<Item, Result>[], waited: Waited): Promise<void> {
    const batch = this.#inOrder(all, waited)
    if (batch.length === 0) return
    try {
      const results = await this.#work(batch.map(({ item }) => item))
      batch.forEach(({ resolve }, i) => {
        resolve(results[i] as Result)
      })
    } catch (error) {
      const [only, ...others] = batch
      const isOfSome =
        this.#about && isOfSomeRows(error) && others.length > 0 && ++waited.halvings <= MOST_HALVINGS
      if (blame(error) === 'database' && !isOfSome) {
        for (const each of batch) this.#keepWaiting(each, error, waited)
      } else if (others.length > 0) {
        const middle = Math.ceil(batch.length / 2)
        await this.#settle(batch.slice(0, middle), waited)
        await this.#settle(batch.slice(middle), waited)
      } else if (only) {
        await this.#settleAlone(only, error, waited)
      }
    }
  }

  /** Without those that an earlier item keeps waiting. */
  #inOrder(all: WaitingItem<Item, Result>[], { refused }: Waited): WaitingItem<Item, Result>[] {
    const about = this.#about
    if (!about || refused.size === 0) return all
    return all.filter(({ item, reject }) => {
      const isToWait = refused.has(about(item))
      if (isToWait) reject(refused.get(about(item)))
      return !isToWait
    })
  }

  #keepWaiting({ item, reject }: WaitingItem<Item, Result>, error: unknown, { refused }: Waited): void {
    if (this.#about) refused.set(this.#about(item), error)
    reject(error)
  }

  async #settleAlone(alone: WaitingItem<Item, Result>, failure: unknown, waited: Waited): Promise<void> {
    const { item, resolve, reject } = alone
    let error = failure
    for (let tries = 1; tries <= TRIES_ALONE; tries++) {
      const isLast = tries === TRIES_ALONE || blame(error) === 'data'
      try {
        const [result] = await this.#work([isLast ? this.#bare(item) : item])
        resolve(result as Result)
        return
      } catch (again) {
        error = again
        if (blame(error) === 'database') return this.#keepWaiting(alone, error, waited)
        if (isLast) break
      }
    }
    reject(error)
  }

  /** Resolves when nothing waits and no batch runs. */
  async drain(): Promise<void> {
    this.#flush()
    if (this.#isRunning) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }
}

/** What a batch met so far. `refused`: why the items about something must wait. */
type Waited = { halvings: number; refused: Map<string, unknown> }

type WaitingItem<Item, Result> = {
  item: Item
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}
