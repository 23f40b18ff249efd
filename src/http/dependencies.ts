import type { Logger } from '../platform/log.ts'
import type { Instant } from '../platform/running/clock.ts'
import { pause } from '../platform/running/lifecycle.ts'

/** A check per dependency; it rejects if the dependency does not answer. */
export type Checks = Record<string, () => Promise<unknown>>

type DependencyState = { reason: string; since: number } | 'ok'

const EVERY_MS = 1_000
const ANSWER_WITHIN_MS = 3_000

/** Checks the dependencies of a process again and again, and logs once that one was lost, and once that it is back. */
export class Dependencies {
  readonly #checks: Checks
  readonly #words: (error: unknown) => string
  readonly #monotonic: () => Instant
  readonly #log: Logger
  readonly #states = new Map<string, DependencyState>()
  readonly #asking = new Map<string, Promise<unknown>>()

  /** `words` explains an error of a check. */
  constructor(options: {
    checks: Checks
    words: (error: unknown) => string
    clock: { monotonic(): number }
    log: Logger
  }) {
    this.#checks = options.checks
    this.#words = options.words
    this.#monotonic = () => options.clock.monotonic()
    this.#log = options.log
  }

  /** One turn of the loop; returns ms to wait before the next. */
  async turn(): Promise<number> {
    await Promise.all(Object.keys(this.#checks).map((name) => this.#look(name)))
    return EVERY_MS
  }

  /** By dependency: `ok`, or its fault. */
  states(): Record<string, string> {
    return Object.fromEntries(
      Object.keys(this.#checks).map((name) => {
        const state = this.#states.get(name)
        return [name, state === undefined ? 'was not checked yet' : state === 'ok' ? 'ok' : state.reason]
      }),
    )
  }

  async #look(name: string): Promise<void> {
    const reason = await this.#whatIsWrong(name)
    const before = this.#states.get(name)
    const now = this.#monotonic()
    if (reason === null) {
      this.#states.set(name, 'ok')
      if (before !== undefined && before !== 'ok')
        this.#log.info({ dependency: name, awayMs: Math.round(now - before.since) }, `${name} is back`)
      return
    }
    const lost = before === undefined || before === 'ok'
    this.#states.set(name, { reason, since: lost ? now : before.since })
    if (lost)
      this.#log.error(
        { dependency: name, reason },
        `${name} does not answer: work that needs it waits until it is back`,
      )
  }

  /** Null: it answers. While a check is unanswered, no second one starts. */
  async #whatIsWrong(name: string): Promise<string | null> {
    const asking = this.#asking.get(name) ?? this.#checks[name]?.()
    if (asking === undefined) return null
    const over = new AbortController()
    const silent = pause(ANSWER_WITHIN_MS, over.signal).then(() => SILENT)
    this.#asking.set(name, asking)
    try {
      if ((await Promise.race([asking, silent])) === SILENT) {
        const done = () => this.#asking.delete(name)
        asking.then(done, done)
        return `does not answer within ${ANSWER_WITHIN_MS / 1000} s`
      }
      this.#asking.delete(name)
      return null
    } catch (error) {
      this.#asking.delete(name)
      return this.#words(error)
    } finally {
      over.abort()
    }
  }
}

const SILENT = Symbol('silent')
