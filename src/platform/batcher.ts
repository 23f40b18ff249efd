/**
 * Collects single items and hands them on together: group commit. A batch leaves when it holds `size`
 * items or when its first item has waited `waitMs`, and at most `lanes` batches are under way at once: while
 * they are, the next one grows. `add` resolves or rejects with its batch.
 */
export class Batcher<Item, Result> {
  readonly #work: (items: Item[]) => Promise<Result[]>
  readonly #size: number
  readonly #waitMs: number
  readonly #lanes: number
  #waiting: Waiting<Item, Result>[] = []
  #timer: NodeJS.Timeout | undefined
  #running = 0
  #idle: (() => void)[] = []

  /** `work` must answer with one result per item, in their order. */
  constructor(
    options: { size: number; waitMs: number; lanes: number },
    work: (items: Item[]) => Promise<Result[]>,
  ) {
    this.#work = work
    this.#size = options.size
    this.#waitMs = options.waitMs
    this.#lanes = options.lanes
  }

  /** Items that no batch has taken yet. */
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

  async #run(batch: Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#work(batch.map(({ item }) => item))
      batch.forEach(({ resolve }, i) => {
        resolve(results[i] as Result)
      })
    } catch (error) {
      for (const { reject } of batch) reject(error)
    } finally {
      this.#running--
      if (this.#waiting.length > 0) this.#flush()
      else if (this.#running === 0) for (const done of this.#idle.splice(0)) done()
    }
  }

  /** Resolves when nothing waits and nothing is under way. */
  async drain(): Promise<void> {
    this.#flush()
    if (this.#running > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }
}

type Waiting<Item, Result> = {
  item: Item
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}
