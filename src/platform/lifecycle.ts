import { setTimeout as delay } from 'node:timers/promises'
import { Heartbeats } from './heartbeats.ts'
import type { Logger } from './log.ts'

type Owned = { name: string; stop: () => Promise<void> }

/**
 * Owns everything that runs: servers, pools, loops. Whatever was added last is stopped first, so that a
 * part never outlives what it stands on.
 */
export class Lifecycle {
  readonly #owned: Owned[] = []
  readonly #abort = new AbortController()
  readonly #log: Logger
  /** Every loop gives a sign with each turn. */
  readonly heartbeats = new Heartbeats()
  #stopping: Promise<void> | undefined

  constructor(log: Logger) {
    this.#log = log
  }

  /** Aborted as soon as stopping begins. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Hands over a part that is running already; `stop` must resolve once nothing of it is left. */
  own(name: string, stop: () => Promise<void>): void {
    this.#owned.push({ name, stop })
  }

  /**
   * Runs `turn` again and again until stopped. It returns how many ms to wait before the next turn (0: at
   * once). A turn that throws is tried again after a pause that doubles up to 5 s: a loop outlives the dependency that
   * it lost. The first failure in a row is logged, and that it goes on again.
   */
  loop(name: string, turn: (signal: AbortSignal) => Promise<number>): void {
    const abort = new AbortController()
    const running = this.#repeat(name, turn, abort.signal)
    this.own(name, async () => {
      abort.abort()
      await running
      this.heartbeats.forget(name)
    })
  }

  async #repeat(name: string, turn: (signal: AbortSignal) => Promise<number>, signal: AbortSignal) {
    let failures = 0
    while (!signal.aborted) {
      let wait: number
      this.heartbeats.sign(name)
      try {
        wait = await turn(signal)
        if (failures > 0) this.#log.info({ loop: name, failures }, 'loop goes on again')
        failures = 0
      } catch (error) {
        wait = Math.min(5_000, 100 * 2 ** failures)
        const line = { err: error, loop: name, retryInMs: wait }
        if (failures++ === 0) this.#log.error(line, 'loop failed, will try again until it goes on')
        else this.#log.debug(line, 'loop failed again')
      }
      this.heartbeats.rest(name)
      await pause(wait, signal)
    }
  }

  /** Stops everything in reverse order. Safe to call twice; the second call waits for the first. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stopAll()
    return this.#stopping
  }

  async #stopAll(): Promise<void> {
    this.#abort.abort()
    for (const { name, stop } of this.#owned.reverse()) {
      try {
        await stop()
      } catch (error) {
        this.#log.error({ err: error, part: name }, 'part did not stop cleanly')
      }
    }
  }
}

/** Waits `ms`, or less when the signal is aborted. Never rejects. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await delay(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}
