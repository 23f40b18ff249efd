import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '../log.ts'
import { Heartbeats } from './heartbeats.ts'

/** `overdue` is aborted when the part's time is up and the lifecycle abandons it. */
type Stop = (overdue: AbortSignal) => Promise<void>
/** `sign` gives a sign of life of the loop. Resolves to the ms to wait before the next turn. */
type Turn = (sign: () => void) => Promise<number>
type Owned = { name: string; stop: Stop }

/** For all parts together; supervisors usually kill a process 30 s after they ask it to stop. */
const STOP_WITHIN_MS = 25_000
/** A part's share of the time that is left, so that one part that hangs leaves some to those after it. */
const SHARE = 0.75

/**
 * Owns everything that runs: servers, pools, loops. It stops the last added part first, so that a part never
 * outlives what it depends on.
 */
export class Lifecycle {
  readonly #owned: Owned[] = []
  readonly #abort = new AbortController()
  readonly #log: Logger
  /** Every loop gives a sign with each turn. */
  readonly heartbeats = new Heartbeats()
  readonly #stopWithinMs: number
  readonly #unfinished: string[] = []
  #stopping: Promise<void> | undefined

  constructor(log: Logger, { stopWithinMs = STOP_WITHIN_MS }: { stopWithinMs?: number } = {}) {
    this.#log = log
    this.#stopWithinMs = stopWithinMs
  }

  /** Aborted as soon as stopping begins. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Takes over a running part; `stop` must resolve once nothing of it is left. */
  own(name: string, stop: Stop): void {
    this.#owned.push({ name, stop })
  }

  /**
   * Runs `turn` again and again until stopped. It returns the ms to wait before the next turn (0: at once). After a
   * turn that throws, the loop tries again with a pause that doubles up to 5 s: a loop survives the loss of a
   * dependency. A long turn gives a sign at each step: it is never silent for longer than one step takes. The loop
   * logs the first failure in a row, and its recovery. Returns a function that ends the wait
   * under way, or the next one; after a turn that threw, the loop waits all the same.
   */
  loop(name: string, turn: Turn): () => void {
    const abort = new AbortController()
    const rest = new Rest()
    const running = this.#repeat(name, turn, rest, abort.signal)
    this.own(name, async () => {
      abort.abort()
      rest.end()
      await running
      this.heartbeats.forget(name)
    })
    return () => rest.end()
  }

  async #repeat(name: string, turn: Turn, rest: Rest, signal: AbortSignal) {
    let failures = 0
    while (!signal.aborted) {
      let wait: number
      this.heartbeats.sign(name)
      try {
        wait = await turn(() => this.heartbeats.sign(name))
        if (failures > 0) this.#log.info({ loop: name, failures }, 'loop goes on again')
        failures = 0
        this.heartbeats.succeed(name)
      } catch (error) {
        this.heartbeats.fail(name)
        wait = Math.min(5_000, 100 * 2 ** failures)
        const line = { err: error, loop: name, retryInMs: wait }
        if (failures++ === 0) this.#log.error(line, 'loop failed, retrying until it succeeds')
        else this.#log.debug(line, 'loop failed again')
      }
      this.heartbeats.rest(name)
      if (failures > 0) await pause(wait, signal)
      else if (!signal.aborted) await rest.take(wait)
    }
  }

  /** Names of the parts that did not stop in time. */
  get unfinished(): readonly string[] {
    return this.#unfinished
  }

  /**
   * Stops everything in reverse order, within 25 s. If a part takes too long, the lifecycle logs its name and
   * abandons it. Safe to call twice; the second call waits for the first.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#stopAll()
    return this.#stopping
  }

  async #stopAll(): Promise<void> {
    this.#abort.abort()
    let leftMs = this.#stopWithinMs
    for (const { name, stop } of this.#owned.reverse()) {
      const began = performance.now()
      try {
        if (!(await within(leftMs * SHARE, stop))) {
          this.#unfinished.push(name)
          this.#log.error({ part: name }, 'part did not stop in time, exiting without it')
        }
      } catch (error) {
        this.#log.error({ err: error, part: name }, 'part did not stop cleanly')
      }
      leftMs -= performance.now() - began
    }
  }
}

/** A wait that others may end. */
class Rest {
  #isOver = false
  #end: (() => void) | undefined

  async take(ms: number): Promise<void> {
    if (!this.#isOver) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, ms)
      this.#end = resolve
      await promise
      clearTimeout(timer)
      this.#end = undefined
    }
    this.#isOver = false
  }

  end(): void {
    this.#isOver = true
    this.#end?.()
  }
}

/** Whether `stop` ended within `ms`. */
async function within(ms: number, stop: Stop): Promise<boolean> {
  const overdue = new AbortController()
  const ended = new AbortController()
  const stopped = stop(overdue.signal).then(() => true)
  try {
    return await Promise.race([stopped, pause(ms, ended.signal).then(() => false)])
  } finally {
    ended.abort()
    overdue.abort()
    // An abandoned part may still fail; its name is logged already.
    stopped.catch(() => undefined)
  }
}

/** Waits for the work, but no longer than `mostMs`. Rejects as it does, if it does before. */
export async function waitFor(work: Promise<unknown>, mostMs: number): Promise<void> {
  const over = new AbortController()
  await Promise.race([work, pause(mostMs, over.signal)]).finally(() => over.abort())
}

/** Waits `ms`, or less if the signal is aborted. Never rejects. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return
  await delay(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal?.aborted) throw error
  })
}
