import { AsyncLocalStorage } from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'
import promises from 'node:timers/promises'
import type { Instant } from '../../src/domain/instant.ts'

/** A timer of one process: it fires when the scheduler says so, and never while its process is frozen. */
export class Timer {
  readonly at: Instant
  readonly fire: () => void
  readonly #timers: Timers

  constructor(at: Instant, fire: () => void, timers: Timers) {
    this.at = at
    this.fire = fire
    this.#timers = timers
  }

  cancel(): void {
    this.#timers.due.delete(this)
  }

  unref(): this {
    return this
  }
}

/** The timers of one process. A timer set within `run`, or by work started there, belongs to it. */
export class Timers {
  readonly due = new Set<Timer>()
  readonly #now: () => Instant

  constructor(now: () => Instant) {
    this.#now = now
  }

  run<T>(work: () => T): T {
    return owner.run(this, work)
  }

  set(fire: () => void, ms: number): Timer {
    const timer = new Timer(this.#now() + Math.max(1, ms), fire, this)
    this.due.add(timer)
    return timer
  }

  fire(timer: Timer): void {
    timer.cancel()
    this.run(timer.fire)
  }
}

const owner = new AsyncLocalStorage<Timers>()

const { setTimeout: realTimeout, clearTimeout: realClear } = globalThis
const realDelay = promises.setTimeout

/** From now on simulated processes get simulated timers; all other code keeps the real ones. */
export function takeTimers(): void {
  const timeout = (fire: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
    owner.getStore()?.set(() => fire(...args), ms) ?? realTimeout(fire, ms, ...args)
  const clear = (timer?: unknown) => {
    if (timer instanceof Timer) timer.cancel()
    else realClear(timer as NodeJS.Timeout)
  }
  const delay = <T>(ms?: number, value?: T, options?: { signal?: AbortSignal }): Promise<T | undefined> => {
    const timers = owner.getStore()
    if (!timers) return realDelay(ms, value, options)
    return new Promise((resolve, reject) => {
      const timer = timers.set(() => resolve(value), ms ?? 0)
      options?.signal?.addEventListener('abort', () => {
        timer.cancel()
        reject(options.signal?.reason)
      })
    })
  }
  Object.assign(globalThis, { setTimeout: timeout, clearTimeout: clear })
  Object.assign(promises, { setTimeout: delay })
  // So that `import { setTimeout } from 'node:timers/promises'` finds it.
  syncBuiltinESMExports()
}
