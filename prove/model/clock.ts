import type { Instant } from '../../src/payout/instant.ts'

/** The only clock of a simulated world: the database's, the gateway's and every process's. */
export class Clock {
  now: Instant = Date.UTC(2026, 10, 30, 9)
  readonly #began = this.now

  /** Since the story began: `1:05.250` is a minute, five seconds and a quarter. */
  text(at: Instant = this.now): string {
    const ms = at - this.#began
    const seconds = ((ms % 60_000) / 1000).toFixed(3).padStart(6, '0')
    return `${Math.floor(ms / 60_000)}:${seconds}`
  }
}
