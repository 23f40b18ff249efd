import { type Clock, isBefore, type Moment, momentAfter, momentOf } from '../platform/running/clock.ts'

/** For how long an order that was found speaks for other queries. */
export const SPEAKS_FOR_MS = 5_000

/** How an order that must exist is named and asked about. */
export type KnownOrder = {
  /** Any order of which the gateway itself said that it exists; null: there is none. */
  known: () => Promise<string | null>
  finds: (mchOrderNo: string) => Promise<boolean>
}

/**
 * The presence check: that queries find, just now and with the settings in use (address, merchant, dialect, path,
 * key), an order known to exist. Without it a "not found" may only mean that we ask in the wrong place, or that
 * nobody's orders are found at the moment.
 */
export class PresenceCheck {
  readonly #clock: Clock
  /** What was found last, by the settings it was found with, and until when it speaks for others. */
  readonly #last = new Map<string, { mchOrderNo: string; until: Moment }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** To be told of every order that a query found. */
  found(settings: string, mchOrderNo: string): void {
    this.#last.set(settings, { mchOrderNo, until: momentAfter(momentOf(this.#clock), SPEAKS_FOR_MS) })
  }

  /** Whether an order was found a moment ago; when not, asks about the last one that was, or any that is known. */
  async holds(settings: string, { known, finds }: KnownOrder): Promise<boolean> {
    const last = this.#last.get(settings)
    if (last && isBefore(momentOf(this.#clock), last.until)) return true
    const mchOrderNo = last?.mchOrderNo ?? (await known())
    if (mchOrderNo === null || !(await finds(mchOrderNo))) return false
    this.found(settings, mchOrderNo)
    return true
  }
}
