import pLimit from 'p-limit'

/** A bounded number of tasks at once, owned: `drain` waits for all of them. A task must not reject. */
export class Slots {
  readonly #limit: ReturnType<typeof pLimit>
  readonly #running = new Set<Promise<void>>()
  readonly #size: number

  constructor(size: number) {
    this.#size = size
    this.#limit = pLimit(size)
  }

  get free(): number {
    return this.#size - this.#running.size
  }

  get taken(): number {
    return this.#running.size
  }

  run(task: () => Promise<void>): void {
    const running = this.#limit(task).finally(() => this.#running.delete(running))
    this.#running.add(running)
  }

  async drain(): Promise<void> {
    await Promise.all(this.#running)
  }
}
