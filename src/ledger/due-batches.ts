import pLimit from 'p-limit'
import type { Logger } from '../platform/log.ts'
import { Batchers } from '../platform/postgres/batchers.ts'
import { blame } from '../platform/postgres/faults.ts'
import { pause, waitFor } from '../platform/running/lifecycle.ts'
import type { SharedSlots } from '../platform/running/shared-slots.ts'
import { keepRefused, type SaidAbout } from './evidence/refused-evidence.ts'
import type { Ledger } from './ledger.ts'

/** The most that one transaction takes. */
const SIZE = 100
/** What a turn looks for of each merchant with free slots. Where it found so much, the next one looks for more. */
const AT_FIRST = 8
/** How long a merchant is left alone after the database failed for it. */
const REST_MS = 5_000
/** How long an item is left alone after the database refused it. */
const REFUSED_REST_MS = 600_000
/** How long an item is left alone that somebody else has locked, so that those behind it are found. */
const LOCKED_REST_MS = 2_000
/** The most items of a merchant that are left alone at once. Each one refused beyond that frees the oldest. */
const MOST_LEFT_ALONE = 1_000
/** How long a turn waits for its work. Slower work goes on beside the next turns. */
const PATIENCE_MS = 250

/** The most of a merchant's items to look for. */
export type QuestionLimit = { merchantId: string; most: number }

/**
 * Does the due work of all merchants, by keys that were found without a lock. Each transaction is of one merchant, and several
 * merchants run at once, so a merchant that waits, or whose work cannot be stored, holds up no other. If the database refuses
 * a batch, tries halves down to the single item; that one becomes an anomaly and is left alone for ten minutes.
 */
export class DueBatches<Key extends { merchantId: string }, Taken> {
  readonly #batches: Batchers<Key, Taken | null>
  readonly #deps: DueDeps<Key>
  readonly #log: Logger
  readonly #taking = new Set<Promise<unknown>>()
  readonly #oneAtATime = pLimit(1)
  readonly #underWay = new Set<string>()
  readonly #resting = new Set<string>()
  readonly #leftAlone = new Map<string, Set<string>>()
  /** Merchants of which the latest turn found all that it looked for. */
  #withMore: ReadonlySet<string> = new Set()
  readonly #leaving = new AbortController()

  /** `take` gets keys of one merchant, and returns one result per key, in their order; null: it is locked, or no longer due. */
  constructor(take: (keys: Key[]) => Promise<(Taken | null)[]>, deps: DueDeps<Key>) {
    this.#batches = new Batchers({ size: SIZE, waitMs: 0, bare: (key) => key }, take)
    this.#deps = deps
    this.#log = deps.log
  }

  /** How many keys to look for, of this merchant or else of any, to find `count` beside those left alone. */
  lookFor(count: number, merchantId?: string): number {
    const leftAlone =
      merchantId === undefined ? [...this.#leftAlone.values()] : [this.#leftAlone.get(merchantId)]
    return count + Math.max(0, ...leftAlone.map((keys) => keys?.size ?? 0))
  }

  /** The found keys that are neither under way nor left alone, at most `ofEach` of each merchant. */
  free(found: readonly Key[], ofEach: number): Key[] {
    return [...this.#freeByMerchant(found).values()].flatMap((keys) => keys.slice(0, ofEach))
  }

  #freeByMerchant(found: readonly Key[]): Map<string, Key[]> {
    const free = found.filter((key) => {
      const id = this.#deps.keyOf(key)
      const isTaken = this.#underWay.has(id) || this.#resting.has(key.merchantId)
      return !isTaken && !this.#leftAlone.get(key.merchantId)?.has(id)
    })
    return Map.groupBy(free, ({ merchantId }) => merchantId)
  }

  /** Never rejects. Resolves to undefined if there is no result, or it could not be stored; a later turn tries again. */
  take(key: Key): Promise<Taken | undefined> {
    const id = this.#deps.keyOf(key)
    this.#underWay.add(id)
    const taking = this.#take(key, id).finally(() => {
      this.#underWay.delete(id)
      this.#taking.delete(taking)
    })
    this.#taking.add(taking)
    return taking
  }

  /**
   * Takes what `find` finds of merchants with free slots, no more than there are slots. The merchants with the fewest slots come
   * first. Each item holds its slot until `ask`, which gets the result, has ended.
   */
  async takeInSlots(
    slots: SharedSlots,
    find: (limits: readonly QuestionLimit[]) => Promise<Key[]>,
    ask: (taken: Taken) => Promise<unknown>,
  ): Promise<(Taken | undefined)[]> {
    const limits = this.#limits(slots)
    const found = await find(limits)
    const byMerchant = Map.groupBy(found, ({ merchantId }) => merchantId)
    const withMore = limits.filter(({ merchantId, most }) => byMerchant.get(merchantId)?.length === most)
    this.#withMore = new Set(withMore.map(({ merchantId }) => merchantId))
    const waiting = [...this.#freeByMerchant(found)]
      .sort(([a], [b]) => slots.held(a) - slots.held(b))
      .map(([, keys]) => keys)
    const begun: Promise<Taken | undefined>[] = []
    for (let i = 0; waiting.some((keys) => i < keys.length); i++) {
      for (const keys of waiting) {
        const key = keys[i]
        if (!key || slots.room(key.merchantId) === 0) continue
        const taking = this.take(key)
        begun.push(taking)
        slots.run(key.merchantId, async () => {
          const taken = await taking
          if (taken) await ask(taken)
        })
      }
    }
    return soon(begun)
  }

  #limits(slots: SharedSlots): QuestionLimit[] {
    const part = Math.max(AT_FIRST, Math.ceil(slots.size / Math.max(1, this.#withMore.size)))
    return slots.owners.flatMap((merchantId) => {
      const room = Math.min(slots.room(merchantId), this.#withMore.has(merchantId) ? part : AT_FIRST)
      return room === 0 ? [] : [{ merchantId, most: this.lookFor(room, merchantId) }]
    })
  }

  async drain(): Promise<void> {
    this.#leaving.abort()
    await this.#batches.drain()
    await Promise.all(this.#taking)
  }

  async #take(key: Key, id: string): Promise<Taken | undefined> {
    try {
      const taken = await this.#batches.add(key.merchantId, key)
      if (taken === null) this.#leaveAlone(key, id, LOCKED_REST_MS)
      return taken ?? undefined
    } catch (error) {
      if (blame(error) === 'database') {
        this.#rest(key.merchantId, error)
        return undefined
      }
      const about = { ...this.#deps.about(key), source: 'CLOCK' } as const
      await this.#oneAtATime(() => keepRefused(error, about, this.#deps))
      this.#log.error({ err: error, refused: key, retryInMs: REFUSED_REST_MS }, REFUSED)
      this.#leaveAlone(key, id, REFUSED_REST_MS)
      return undefined
    }
  }

  #rest(merchantId: string, error: unknown): void {
    if (this.#resting.has(merchantId)) return
    this.#log.error({ err: error, merchantId, retryInMs: REST_MS }, FAILED)
    this.#resting.add(merchantId)
    void pause(REST_MS, this.#leaving.signal).then(() => this.#resting.delete(merchantId))
  }

  #leaveAlone(key: Key, id: string, ms: number): void {
    const keys = this.#leftAlone.get(key.merchantId) ?? new Set()
    this.#leftAlone.set(key.merchantId, keys.add(id))
    const [first] = keys
    if (keys.size > MOST_LEFT_ALONE) keys.delete(first as string)
    void pause(ms, this.#leaving.signal).then(() => keys.delete(id))
  }
}

type DueDeps<Key> = {
  keyOf: (key: Key) => string
  /** How an anomaly names the item. */
  about: (key: Key) => Omit<SaidAbout, 'source'>
  ledger: Ledger
  log: Logger
}

/** Waits up to PATIENCE_MS for work that has begun. Resolves to the results there are by then. */
export async function soon<Result>(begun: readonly Promise<Result>[]): Promise<Result[]> {
  const results: Result[] = []
  await waitFor(Promise.all(begun.map(async (each) => results.push(await each))), PATIENCE_MS)
  return [...results]
}

const FAILED = 'could not store due work of this merchant, retrying; other merchants are not affected'
const REFUSED = 'the database refuses the due work of this order, retrying; others are not affected'
