import pLimit from 'p-limit'
import type { Logger } from '../log.ts'

/** A bounded number of tasks at once; `drain` waits for all of them. A task that rejects frees its slot. */
export class Slots {
  readonly #limit: ReturnType<typeof pLimit>
  readonly #running = new Set<Promise<void>>()
  readonly #log: Logger

  constructor(size: number, log: Logger) {
    this.#limit = pLimit(size)
    this.#log = log
  }

  run(task: () => Promise<void>): void {
    const running = this.#limit(task)
      .catch((error: unknown) => this.#log.error({ err: error }, 'a task failed'))
      .finally(() => this.#running.delete(running))
    this.#running.add(running)
  }

  async drain(): Promise<void> {
    await Promise.all(this.#running)
  }
}
