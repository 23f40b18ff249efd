import type { Instant } from '../../../src/platform/running/clock.ts'
import type { Store } from './store.ts'

/** The platform's own numbers. Payouts, payins and payments share one sequence, so an id names one thing. */
export class Sequence {
  #next: number

  constructor(store: Store) {
    const last = store.prepare(
      `select max(id) as id from (select max(id) as id from orders
         union all select max(id) from payins union all select max(id) from payments)`,
    )
    this.#next = Number(last.get()?.id ?? 0) + 1
  }

  next(): number {
    return this.#next++
  }
}

/** Payouts are numbered AP…, payins PI…. */
type Prefix = 'AP' | 'PI'

/** A platform order number: 20 characters, from the day (UTC) of acceptance and the order's id. */
export const platformNo = (prefix: Prefix, id: number, takenAt: Instant): string =>
  `${prefix}${day(takenAt)}${String(id).padStart(10, '0')}`

/** The id in a platform order number, or undefined if the text is not one with this prefix. */
export function idIn(platformNo: string, prefix: Prefix): number | undefined {
  const [, found, id] = /^([A-Z]{2})\d{8}(\d{10})$/.exec(platformNo) ?? []
  return found === prefix ? Number(id) : undefined
}

/** Twelve digits, as IMPS and UPI write them: last digit of the year, month and day, then the id. */
export const utrOf = (id: number, at: Instant): string =>
  `${day(at).slice(3)}${String(id % 10_000_000).padStart(7, '0')}`

let dayCache = { start: Number.NaN, text: '' }

function day(at: Instant): string {
  const start = at - (at % 86_400_000)
  if (dayCache.start !== start) {
    dayCache = { start, text: new Date(start).toISOString().slice(0, 10).replaceAll('-', '') }
  }
  return dayCache.text
}
