import { type Clock, isBefore, type Moment, momentAfter, momentOf } from '../platform/running/clock.ts'

/** How long a found order counts as a presence check for other queries. */
export const SPEAKS_FOR_MS = 5_000

/** How many orders it asks about: a gateway need not find for ever what it once confirmed, and may find the newest only after a while. */
export const MOST_ASKED = 3

/** How to find an order that must exist. */
export type KnownOrders = {
  /** Orders that the gateway itself confirmed to exist, of different age; those to ask about first come first. */
  known: () => Promise<readonly string[]>
  finds: (mchOrderNo: string) => Promise<boolean>
}

/**
 * The presence check: queries with the current settings (address, merchant, dialect, path, key) find an order that is known to
 * exist, at this moment. Without it a "not found" may only mean that the client asks in the wrong place, or that the gateway
 * finds no orders at the moment.
 */
export class PresenceCheck {
  readonly #clock: Clock
  /** The last order found, per settings, and until when it counts. */
  readonly #last = new Map<string, { mchOrderNo: string; until: Moment }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Call it with every order that a query found. */
  found(settings: string, mchOrderNo: string): void {
    this.#last.set(settings, { mchOrderNo, until: momentAfter(momentOf(this.#clock), SPEAKS_FOR_MS) })
  }

  /** Whether an order was found a moment ago. If not, asks about the last one found, then about known ones, until one is found. */
  async holds(settings: string, { known, finds }: KnownOrders): Promise<boolean> {
    const last = this.#last.get(settings)
    if (last && isBefore(momentOf(this.#clock), last.until)) return true
    const isThere = async (mchOrderNo: string) => {
      if (!(await finds(mchOrderNo))) return false
      this.found(settings, mchOrderNo)
      return true
    }
    if (last && (await isThere(last.mchOrderNo))) return true
    const others = (await known()).filter((mchOrderNo) => mchOrderNo !== last?.mchOrderNo)
    for (const mchOrderNo of others.slice(0, MOST_ASKED - (last ? 1 : 0)))
      if (await isThere(mchOrderNo)) return true
    return false
  }
}
