/** Above the longest pause before anything is tried again. */
const TRIED_AGAIN_WITHIN_MS = 60_000

/**
 * Signs of life of whatever must go on. Each gives one as often as it gets on with its work; whoever waits because
 * there is nothing to do rests.
 */
export class Heartbeats {
  /** By name: when it gave its last sign (monotonic ms), or null while it rests. */
  readonly #signs = new Map<string, number | null>()
  /** By name, of what failed and has not succeeded since: its first and its latest failure (monotonic ms). */
  readonly #failing = new Map<string, { since: number; at: number }>()
  readonly #now: () => number

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** It is at work, and has got on with it now. */
  sign(name: string): void {
    this.#signs.set(name, this.#now())
  }

  rest(name: string): void {
    this.#signs.set(name, null)
  }

  /** It has come to the end of what it does; it may have given signs of life before, and failed each time. */
  succeed(name: string): void {
    this.#failing.delete(name)
  }

  fail(name: string): void {
    const at = this.#now()
    const before = this.#failing.get(name)
    const goesOn = before && at - before.at < TRIED_AGAIN_WITHIN_MS
    this.#failing.set(name, { since: goesOn ? before.since : at, at })
  }

  /** It was stopped: nobody waits for a sign of it. */
  forget(name: string): void {
    this.#signs.delete(name)
    this.#failing.delete(name)
  }

  /** By name: how many ms ago each gave its last sign; 0 while it rests. */
  silences(): Map<string, number> {
    const now = this.#now()
    return new Map([...this.#signs].map(([name, at]) => [name, at === null ? 0 : now - at]))
  }

  /** By name: for how many ms each did nothing but fail, until it did so last. What is tried no more, as others do it, fails no more. */
  failures(): Map<string, number> {
    const now = this.#now()
    const failing = [...this.#failing].filter(([, { at }]) => now - at < TRIED_AGAIN_WITHIN_MS)
    return new Map(failing.map(([name, { since, at }]) => [name, at - since]))
  }
}
