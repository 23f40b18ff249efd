import type { Instant } from '../../src/platform/running/clock.ts'
import type { DrivenClock } from './driven-clock.ts'

type Appointment<T> = { at: Instant; what: T }

/** Items that fall due within this time are passed on together, and share one commit. */
const TICK_MS = 2

/** Keeps items by due time. Passes on all that are due, earliest first, in one list. */
export class Scheduler<T> {
  readonly #clock: DrivenClock
  readonly #run: (due: T[]) => void
  /** A binary heap: each appointment is no later than the two below it. */
  readonly #heap: Appointment<T>[] = []
  #timer: NodeJS.Timeout | undefined
  #timerAt = Number.POSITIVE_INFINITY
  #stopped = false

  constructor(clock: DrivenClock, run: (due: T[]) => void) {
    this.#clock = clock
    this.#run = run
    clock.onAdvance(() => this.#wake())
  }

  add(at: Instant, what: T): void {
    this.#heap.push({ at, what })
    this.#rise(this.#heap.length - 1)
    this.#wakeFor(at)
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  #wakeFor(at: Instant): void {
    if (this.#stopped || at >= this.#timerAt) return
    clearTimeout(this.#timer)
    this.#timerAt = at
    const wait = Math.min(Math.max(at - this.#clock.now(), TICK_MS), 2 ** 31 - 1)
    this.#timer = setTimeout(() => this.#wake(), wait)
  }

  #wake(): void {
    if (this.#stopped) return
    this.#timerAt = Number.POSITIVE_INFINITY
    const now = this.#clock.now()
    const due: T[] = []
    while (this.#heap[0] && this.#heap[0].at <= now) due.push(this.#takeFirst())
    try {
      if (due.length > 0) this.#run(due)
    } finally {
      if (this.#heap[0]) this.#wakeFor(this.#heap[0].at)
    }
  }

  #takeFirst(): T {
    const first = this.#heap[0] as Appointment<T>
    const last = this.#heap.pop() as Appointment<T>
    if (this.#heap.length > 0) {
      this.#heap[0] = last
      this.#sink(0)
    }
    return first.what
  }

  #rise(from: number): void {
    let i = from
    while (i > 0) {
      const parent = (i - 1) >> 1
      if (this.#at(parent) <= this.#at(i)) return
      this.#swap(i, parent)
      i = parent
    }
  }

  #sink(from: number): void {
    let i = from
    for (;;) {
      const left = 2 * i + 1
      const least = this.#at(left + 1) < this.#at(left) ? left + 1 : left
      if (this.#at(least) >= this.#at(i)) return
      this.#swap(i, least)
      i = least
    }
  }

  #at(i: number): Instant {
    return this.#heap[i]?.at ?? Number.POSITIVE_INFINITY
  }

  #swap(i: number, j: number): void {
    const held = this.#heap[i] as Appointment<T>
    this.#heap[i] = this.#heap[j] as Appointment<T>
    this.#heap[j] = held
  }
}
