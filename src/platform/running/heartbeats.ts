/** Longer than the longest pause before a retry. */
const TRIED_AGAIN_WITHIN_MS = 60_000
/** Longer than the longest pause and the longest try together: one that is halved again and again may take minutes. */
const FAILS_ON_WITHIN_MS = 600_000

/**
 * Signs of life of every part that must keep going. A part gives one each time it makes progress; a part with
 * nothing to do rests.
 */
export class Heartbeats {
  /** By name: when the part gave its last sign (monotonic ms), or null while it rests. */
  readonly #signs = new Map<string, number | null>()
  /** By name, for each part that failed and has not succeeded since: its first and its latest failure (monotonic ms). */
  readonly #failing = new Map<string, { since: number; at: number }>()
  readonly #now: () => number

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** The part is at work and has just made progress. */
  sign(name: string): void {
    this.#signs.set(name, this.#now())
  }

  rest(name: string): void {
    this.#signs.set(name, null)
  }

  /** The part has finished its work; earlier it may have given signs of life and still failed each time. */
  succeed(name: string): void {
    this.#failing.delete(name)
  }

  fail(name: string): void {
    const at = this.#now()
    const before = this.#failing.get(name)
    const goesOn = before && at - before.at < FAILS_ON_WITHIN_MS
    this.#failing.set(name, { since: goesOn ? before.since : at, at })
  }

  /** The part was stopped: no sign is expected of it. */
  forget(name: string): void {
    this.#signs.delete(name)
    this.#failing.delete(name)
  }

  /** By name: how many ms ago each part gave its last sign; 0 while it rests. */
  silences(): Map<string, number> {
    const now = this.#now()
    return new Map([...this.#signs].map(([name, at]) => [name, at === null ? 0 : now - at]))
  }

  /**
   * By name: for how many ms each part did nothing but fail, up to its last failure. A task that is no longer
   * tried, because another process does it, no longer counts as failing.
   */
  failures(): Map<string, number> {
    const now = this.#now()
    const failing = [...this.#failing].filter(([, { at }]) => now - at < TRIED_AGAIN_WITHIN_MS)
    return new Map(failing.map(([name, { since, at }]) => [name, at - since]))
  }
}
