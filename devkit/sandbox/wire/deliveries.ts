import type { StatementSync } from 'node:sqlite'
import type { Instant } from '../../../src/platform/running/clock.ts'
import type { Store } from '../state/store.ts'

/** How one callback went. */
export type Delivery = {
  /** Whether the answer was 2xx with the plain text `success`. */
  acknowledged: boolean
  at: Instant
  /** Null if no answer began. */
  httpStatus: number | null
  /** The first 100 characters of the answer. */
  answer: string
  /** Why there is no whole answer; null if there is one. */
  error: string | null
  durationMs: number
}

/** Every callback ever tried, by its order. Every write belongs inside `store.write`. */
export class Deliveries {
  readonly #insert: StatementSync
  readonly #about: StatementSync

  constructor(store: Store) {
    this.#insert = store.prepare('insert into deliveries values (?, ?, ?, ?, ?, ?, ?)')
    this.#about = store.prepare('select * from deliveries where order_id = ? order by attempt')
  }

  /** `attempt` counts from 1. */
  add(orderId: number, attempt: number, { at, httpStatus, answer, error, durationMs }: Delivery): void {
    this.#insert.run(orderId, attempt, at, httpStatus, answer, error, durationMs)
  }

  /** In the order of the attempts; `at` in milliseconds since the epoch. */
  about(orderId: number) {
    return this.#about.all(orderId).map((row) => ({
      attempt: Number(row.attempt),
      at: Number(row.at),
      httpStatus: row.http_status === null ? null : Number(row.http_status),
      answer: String(row.answer),
      error: row.error === null ? null : String(row.error),
      durationMs: Number(row.duration_ms),
    }))
  }
}
