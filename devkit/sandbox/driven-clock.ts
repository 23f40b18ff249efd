import type { Clock, Instant } from '../../src/platform/running/clock.ts'

/** A clock that can be put forward, so that whoever waits for something need not. */
export class DrivenClock implements Clock {
  readonly #clock: Clock
  readonly #sleepers: (() => void)[] = []
  #aheadMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): Instant {
    return this.#clock.now() + this.#aheadMs
  }

  /** Not put forward: how long something took is not what anybody waits for. */
  monotonic(): number {
    return this.#clock.monotonic()
  }

  /** Puts it forward by `ms`, and wakes all sleepers before it returns. */
  advance(ms: number): void {
    this.#aheadMs += ms
    for (const wake of this.#sleepers) wake()
  }

  /** `wake` is called whenever the clock was put forward. */
  onAdvance(wake: () => void): void {
    this.#sleepers.push(wake)
  }
}
