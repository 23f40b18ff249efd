import type { Clock, Instant } from '../../src/platform/running/clock.ts'

/** A clock that can be moved forward, so that nobody need wait. */
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

  /** Not moved forward: it measures durations, and nobody waits for those. */
  monotonic(): number {
    return this.#clock.monotonic()
  }

  /** Moves the clock forward by `ms`, and wakes all sleepers before it returns. */
  advance(ms: number): void {
    this.#aheadMs += ms
    for (const wake of this.#sleepers) wake()
  }

  /** `wake` is called whenever the clock moves forward. */
  onAdvance(wake: () => void): void {
    this.#sleepers.push(wake)
  }
}
