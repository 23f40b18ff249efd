import pLimit from 'p-limit'
import type { Logger } from '../platform/log.ts'
import { Batchers } from '../platform/postgres/batchers.ts'
import { blame } from '../platform/postgres/postgres.ts'
import { pause } from '../platform/running/lifecycle.ts'
import type { SharedSlots } from '../platform/running/shared-slots.ts'
import { keepRefused, type SaidAbout } from './evidence/refused-evidence.ts'
import type { Ledger } from './ledger.ts'

/** What one transaction takes. */
const SIZE = 100
/** For how long a merchant is left alone for whom the database failed. */
const REST_MS = 5_000
/** For how long one item is left alone that the database refused. */
const REFUSED_REST_MS = 600_000
/** Of a merchant, so many are left alone at once: of those refused after that, the first ones are tried again. */
const MOST_LEFT_ALONE = 1_000
/** What a turn waits for; what takes longer goes on beside the next turns. */
const PATIENCE_MS = 250

/**
 * Takes up what is due of all merchants, by keys that were found without a lock: in transactions of each merchant by itself,
 * those of several at once, so that what one of them waits for, or cannot store, holds up no other. Where the database
 * refuses some of it, halves are tried down to the single item, of which there is an anomaly, and which is left alone for ten
 * minutes.
 */
export class DueBatches<Key extends { merchantId: string }, Taken> {
  readonly #batches: Batchers<Key, Taken>
  readonly #deps: DueDeps<Key>
  readonly #log: Logger
  readonly #taking = new Set<Promise<unknown>>()
  readonly #oneAtATime = pLimit(1)
  readonly #underWay = new Set<string>()
  readonly #resting = new Set<string>()
  readonly #leftAlone = new Map<string, Set<string>>()
  readonly #leaving = new AbortController()

  /** `take` is given keys of one merchant, and answers with one result per key, in their order. */
  constructor(take: (keys: Key[]) => Promise<Taken[]>, deps: DueDeps<Key>) {
    this.#batches = new Batchers({ size: SIZE, waitMs: 0, lanes: 1, bare: (key) => key }, take)
    this.#deps = deps
    this.#log = deps.log
  }

  /** How many are to be looked for, of this merchant or else of any, so that `count` are found beside those left alone. */
  lookFor(count: number, merchantId?: string): number {
    const leftAlone =
      merchantId === undefined ? [...this.#leftAlone.values()] : [this.#leftAlone.get(merchantId)]
    return count + Math.max(0, ...leftAlone.map((keys) => keys?.size ?? 0))
  }

  /** Of what was found, that which is neither under way nor left alone, so many of each merchant at most. */
  free(found: readonly Key[], atMost: (merchantId: string) => number): Key[] {
    const free = found.filter((key) => {
      const id = this.#deps.keyOf(key)
      const isTaken = this.#underWay.has(id) || this.#resting.has(key.merchantId)
      return !isTaken && !this.#leftAlone.get(key.merchantId)?.has(id)
    })
    const byMerchant = Map.groupBy(free, ({ merchantId }) => merchantId)
    return [...byMerchant].flatMap(([merchantId, keys]) => keys.slice(0, atMost(merchantId)))
  }

  /** Never rejects: undefined where it could not be stored, which is tried again later. */
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
   * Takes up what `find` finds of merchants that have slots free, of each at most its limit, and no more than there are slots.
   * Each holds its slot until `ask`, which is given what came of it, has ended.
   */
  async takeInSlots(
    slots: SharedSlots,
    find: (limits: { merchantIds: string[]; limits: number[] }) => Promise<Key[]>,
    ask: (taken: Taken) => Promise<unknown>,
  ): Promise<(Taken | undefined)[]> {
    const begun = await slots.offer(async (rooms) => {
      const merchantIds = [...rooms.keys()]
      const limits = [...rooms].map(([merchantId, room]) => this.lookFor(room, merchantId))
      const found = await find({ merchantIds, limits })
      return this.free(found, (merchantId) => rooms.get(merchantId) ?? 0).map((key) => {
        const taking = this.take(key)
        slots.run(key.merchantId, async () => {
          const taken = await taking
          if (taken) await ask(taken)
        })
        return taking
      })
    })
    return soon(begun)
  }

  async drain(): Promise<void> {
    this.#leaving.abort()
    await this.#batches.drain()
    await Promise.all(this.#taking)
  }

  async #take(key: Key, id: string): Promise<Taken | undefined> {
    try {
      return await this.#batches.add(key.merchantId, key)
    } catch (error) {
      if (blame(error) === 'database') {
        this.#rest(key.merchantId, error)
        return undefined
      }
      const about = { ...this.#deps.about(key), source: 'CLOCK' } as const
      await this.#oneAtATime(() => keepRefused(error, about, this.#deps))
      this.#leaveAlone(key, id, error)
      return undefined
    }
  }

  #rest(merchantId: string, error: unknown): void {
    if (this.#resting.has(merchantId)) return
    this.#log.error({ err: error, merchantId, retryInMs: REST_MS }, FAILED)
    this.#resting.add(merchantId)
    void pause(REST_MS, this.#leaving.signal).then(() => this.#resting.delete(merchantId))
  }

  #leaveAlone(key: Key, id: string, error: unknown): void {
    this.#log.error({ err: error, refused: key, retryInMs: REFUSED_REST_MS }, REFUSED)
    const keys = this.#leftAlone.get(key.merchantId) ?? new Set()
    this.#leftAlone.set(key.merchantId, keys.add(id))
    const [first] = keys
    if (keys.size > MOST_LEFT_ALONE) keys.delete(first as string)
    void pause(REFUSED_REST_MS, this.#leaving.signal).then(() => keys.delete(id))
  }
}

type DueDeps<Key> = {
  keyOf: (key: Key) => string
  /** How an anomaly names it. */
  about: (key: Key) => Omit<SaidAbout, 'source'>
  ledger: Ledger
  log: Logger
}

/** Waits for what was taken up, but not for what takes long. Resolves to the results there are by then. */
export async function soon<Result>(begun: readonly Promise<Result>[]): Promise<Result[]> {
  const results: Result[] = []
  const over = new AbortController()
  const all = begun.map(async (each) => results.push(await each))
  await Promise.race([Promise.all(all), pause(PATIENCE_MS, over.signal)])
  over.abort()
  return [...results]
}

const FAILED = 'could not store due work of this merchant, retrying; other merchants are not affected'
const REFUSED = 'the database refuses the due work of this order, retrying; others are not affected'
