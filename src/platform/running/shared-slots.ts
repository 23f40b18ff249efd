import type { Logger } from '../log.ts'
import { Slots } from './slots.ts'

/** A quarter of all slots is reserved: each owner has an equal part of it to itself. */
const RESERVED = 1 / 4

/**
 * A bounded number of tasks at once, of several owners. Each owner has slots of its own, one at least, which it
 * always finds free whatever the others hold; the rest is for all. An only owner may hold every slot. Owners beyond
 * the number of slots have one each all the same.
 */
export class SharedSlots {
  readonly #running: Slots
  readonly #size: number
  readonly #own: number
  readonly #held: Map<string, number>
  /** Slots that are held, or kept free for their owner. */
  #used: number

  constructor(size: number, owners: Iterable<string>, log: Logger) {
    this.#running = new Slots(Number.POSITIVE_INFINITY, log)
    this.#held = new Map([...owners].map((owner) => [owner, 0]))
    this.#size = size
    this.#own = Math.max(1, Math.floor((size * RESERVED) / Math.max(1, this.#held.size)))
    this.#used = this.#own * this.#held.size
  }

  get owners(): string[] {
    return [...this.#held.keys()]
  }

  held(owner: string): number {
    return this.#held.get(owner) ?? 0
  }

  /** How many more this owner may take now. */
  room(owner: string): number {
    if (!this.#held.has(owner)) return 0
    return this.ownRoom(owner) + Math.max(0, this.#size - this.#used)
  }

  /** How many of them it takes from nobody. */
  ownRoom(owner: string): number {
    return Math.max(0, this.#own - this.held(owner))
  }

  /** Holds `count` slots until they are given back: for tasks that are yet to be found. */
  take(owner: string, count: number): void {
    const before = this.held(owner)
    this.#held.set(owner, before + count)
    this.#used += Math.max(before + count, this.#own) - Math.max(before, this.#own)
  }

  giveBack(owner: string, count: number): void {
    this.take(owner, -count)
  }

  /**
   * Holds whatever each of these owners may take now while tasks are looked for: `find` is given those that have room. That is
   * for one statement: nobody else finds more than its own slots meanwhile.
   */
  async offer<T>(
    find: (rooms: ReadonlyMap<string, number>) => Promise<T>,
    owners: readonly string[] = this.owners,
  ): Promise<T> {
    const rooms = new Map<string, number>()
    for (const owner of owners) {
      const room = this.room(owner)
      if (room === 0) continue
      this.take(owner, room)
      rooms.set(owner, room)
    }
    try {
      return await find(rooms)
    } finally {
      for (const [owner, room] of rooms) this.giveBack(owner, room)
    }
  }

  /** Runs a task in a slot of its owner, which gets it back also where the task rejects. */
  run(owner: string, task: () => Promise<void>): void {
    this.take(owner, 1)
    this.#running.run(() => task().finally(() => this.giveBack(owner, 1)))
  }

  drain(): Promise<void> {
    return this.#running.drain()
  }
}
