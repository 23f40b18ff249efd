import type { Clock } from '../../platform/running/clock.ts'
import { pause } from '../../platform/running/lifecycle.ts'

/** Lets at most so many callers through per second, evenly. */
export class Pace {
  readonly #everyMs: number
  readonly #clock: Clock
  #next = 0

  constructor(perSecond: number, clock: Clock) {
    this.#everyMs = 1000 / perSecond
    this.#clock = clock
  }

  /** Resolves when it is the caller's turn, or the signal is aborted. */
  async turn(signal: AbortSignal): Promise<void> {
    const now = this.#clock.monotonic()
    const at = Math.max(now, this.#next)
    this.#next = at + this.#everyMs
    if (at > now) await pause(at - now, signal)
  }
}
