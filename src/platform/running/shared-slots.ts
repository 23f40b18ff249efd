import type { Logger } from '../log.ts'
import { Slots } from './slots.ts'

/** At most a quarter of all slots is reserved: each owner has an equal part of it to itself. */
const RESERVED = 1 / 4

/**
 * A bounded number of tasks at once, of several owners. Each owner has an equal part of a quarter of the slots to itself,
 * whatever the others hold; all owners share the rest. A single owner may hold every slot. If there are so many owners that no
 * slot is left for each, one that holds none may hold one all the same, beyond the number of slots.
 */
export class SharedSlots {
  readonly #running: Slots
  readonly size: number
  /** How many slots each owner has to itself. */
  readonly own: number
  readonly #held: Map<string, number>
  /** Slots that are held, or kept free for their owner. */
  #used: number

  constructor(size: number, owners: Iterable<string>, log: Logger) {
    this.#running = new Slots(Number.POSITIVE_INFINITY, log)
    this.#held = new Map([...owners].map((owner) => [owner, 0]))
    this.size = size
    this.own = Math.floor((size * RESERVED) / Math.max(1, this.#held.size))
    this.#used = this.own * this.#held.size
  }

  get owners(): string[] {
    return [...this.#held.keys()]
  }

  held(owner: string): number {
    return this.#held.get(owner) ?? 0
  }

  /** How many more this owner may take now. */
  room(owner: string): number {
    return this.#held.has(owner) ? Math.max(this.ownRoom(owner), this.roomWithin(owner)) : 0
  }

  /** The same without the one beyond the number of slots. */
  roomWithin(owner: string): number {
    if (!this.#held.has(owner)) return 0
    return this.#reserved(owner) + Math.max(0, this.size - this.#used)
  }

  /** How many of them it takes whatever the others hold. */
  ownRoom(owner: string): number {
    return Math.max(this.#reserved(owner), this.held(owner) === 0 ? 1 : 0)
  }

  #reserved(owner: string): number {
    return Math.max(0, this.own - this.held(owner))
  }

  /** Holds `count` slots, for tasks not found yet, until they are given back. */
  take(owner: string, count: number): void {
    const before = this.held(owner)
    this.#held.set(owner, before + count)
    this.#used += Math.max(before + count, this.own) - Math.max(before, this.own)
  }

  giveBack(owner: string, count: number): void {
    this.take(owner, -count)
  }

  /**
   * While `find` takes tasks of this owner, holds all that the owner may take now; `find` gets how many those are. For a single
   * statement only: meanwhile other callers find only their owners' own slots.
   */
  async offer<T>(owner: string, find: (room: number) => Promise<T>): Promise<T> {
    const room = this.room(owner)
    this.take(owner, room)
    try {
      return await find(room)
    } finally {
      this.giveBack(owner, room)
    }
  }

  /** Runs a task in a slot of its owner, and frees the slot even if the task rejects. */
  run(owner: string, task: () => Promise<void>): void {
    this.take(owner, 1)
    this.#running.run(() => task().finally(() => this.giveBack(owner, 1)))
  }

  drain(): Promise<void> {
    return this.#running.drain()
  }
}
