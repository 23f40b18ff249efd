import { type Clock, isBefore, type Moment, momentAfter, momentOf } from '../platform/running/clock.ts'

/** How long a found order counts as a presence check for other queries. */
export const SPEAKS_FOR_MS = 5_000
/** The most orders that one check asks about. */
export const MOST_ASKED = 2
/** A check never needs more than the latest few of the orders that were found. */
const MOST_FOUND = 1_000

/** How to find orders that must exist. */
export type KnownOrders = {
  /**
   * Orders that the gateway itself confirmed to exist, up to MOST_ASKED: the last one from before the order that was not found, and
   * one from after it. Empty: it confirmed orders, but none fits this check. Null: it never confirmed any.
   */
  known: () => Promise<readonly string[] | null>
  finds: (mchOrderNo: string) => Promise<boolean>
}

/**
 * The presence check: queries with the current settings (address, merchant, dialect, path, key) find orders that are known to
 * exist, at this moment. Without it a "not found" may only mean that the client asks in the wrong place, or that the gateway
 * finds no orders at the moment, none of that age any more, or none so new yet.
 */
export class PresenceCheck {
  readonly #clock: Clock
  /** Per settings: until when each order counts that was found. */
  readonly #found = new Map<string, Map<string, Moment>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Call it with every order that a query found. */
  found(settings: string, mchOrderNo: string): void {
    const orders = this.#found.get(settings) ?? new Map<string, Moment>()
    if (orders.size >= MOST_FOUND) orders.clear()
    this.#found.set(settings, orders.set(mchOrderNo, momentAfter(momentOf(this.#clock), SPEAKS_FOR_MS)))
  }

  /** Whether there are known orders, and each was found a moment ago, or is found now. Null: there never were any. */
  async holds(settings: string, { known, finds }: KnownOrders): Promise<boolean | null> {
    const orders = await known()
    if (orders === null) return null
    if (orders.length === 0) return false
    for (const mchOrderNo of orders) {
      const until = this.#found.get(settings)?.get(mchOrderNo)
      if (until && isBefore(momentOf(this.#clock), until)) continue
      if (!(await finds(mchOrderNo))) return false
      this.found(settings, mchOrderNo)
    }
    return true
  }
}
