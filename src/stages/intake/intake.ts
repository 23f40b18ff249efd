import pLimit from 'p-limit'
import type { RecordBatch } from '../../platform/kafka/records.ts'
import { isOfSomeRows, isWithoutAnswer } from '../../platform/postgres/faults.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import { type ReadCommand, type ReadDeps, readRecord } from './parse-command.ts'
import { LedgerRewound, type StoreDeps, store, takeIn, tell } from './store-batch.ts'
import {
  epochBetween,
  type Slice,
  sliceOf,
  storeSlices,
  type TakeIn,
  takeApart,
  takeTogether,
} from './store-slices.ts'

export type IntakeDeps = StoreDeps & ReadDeps

/** How many records one transaction takes: larger ones gain nothing and hold locks for longer. */
const CHUNK = 500

/** How many records are read side by side: each may have a schema of its own, which intake asks the registry for. */
const READ_AT_ONCE = 25

/** Transactions at the same time. The second begins only with a whole chunk (smaller ones are cheaper together), or after a while. */
const LANES = 2
const PATIENCE_MS = 500

type Waiting = { slice: Slice; resolve: () => void; reject: (error: unknown) => void }

/**
 * Stores commands. What comes from several partitions at the same time shares a transaction: commands of one merchant take turns
 * anyway, and most of a small transaction is the way to the database.
 */
export class Intake {
  readonly #deps: IntakeDeps
  readonly #waiting: Waiting[] = []
  #running = 0
  readonly #fewAlone = pLimit(LANES)
  #begunAt = 0
  #soon: NodeJS.Immediate | undefined
  #later: NodeJS.Timeout | undefined

  constructor(deps: IntakeDeps) {
    this.#deps = deps
  }

  /**
   * Stores one fetched batch of a partition. Resolves once everything is in the ledger with its offsets. Rejects when the database
   * or the registry is down, or the ledger was set back: the caller then asks the ledger for its position, and hands over what
   * follows there. Commands of a merchant whose locks are held wait in the ledger (`processWaiting`).
   */
  async process({ topic, partition, stored, records, nextOffset, epoch }: RecordBatch): Promise<void> {
    const origin = { topic, partition, logId: stored.logId }
    let from = stored.offset
    // For a batch without records, only the position is stored.
    for (let begin = 0; begin === 0 || begin < records.length; begin += CHUNK) {
      const reads: ReadCommand[] = []
      const chunk = records.slice(begin, begin + CHUNK)
      for (let first = 0; first < chunk.length; first += READ_AT_ONCE) {
        const some = chunk.slice(first, first + READ_AT_ONCE).map(async (record) => ({
          origin,
          record,
          parsed: await readRecord(record, origin, this.#deps),
        }))
        reads.push(...(await Promise.all(some)))
      }
      const next = records[begin + CHUNK]
      const until = next?.offset ?? nextOffset
      await this.#add({
        ...{ origin, reads, from, until },
        epoch: next ? epochBetween(chunk.at(-1), next) : (epoch ?? null),
      })
      from = until
    }
  }

  #add(slice: Slice): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ slice, resolve, reject })
      // Batches of one fetch arrive one after the other.
      this.#soon ??= setImmediate(() => {
        this.#soon = undefined
        this.#begin()
      })
    })
  }

  #begin(): void {
    while (this.#waiting.length > 0 && this.#running < LANES) {
      if (this.#running > 0 && !this.#isWhole() && performance.now() < this.#begunAt + PATIENCE_MS) {
        this.#later ??= setTimeout(() => {
          this.#later = undefined
          this.#begin()
        }, PATIENCE_MS)
        return
      }
      this.#running++
      this.#begunAt = performance.now()
      void this.#run(this.#next())
    }
  }

  #isWhole(): boolean {
    return this.#waiting.reduce((sum, { slice }) => sum + slice.reads.length, 0) >= CHUNK
  }

  /** The first ones that are a chunk together: at least one. */
  #next(): Waiting[] {
    const some = this.#waiting.splice(0, 1)
    let count = some[0]?.slice.reads.length ?? 0
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      count += next.slice.reads.length
      if (count > CHUNK) break
      some.push(next)
      this.#waiting.shift()
    }
    return some
  }

  /** Never rejects: the promise of each slice does. */
  async #run(some: readonly Waiting[]): Promise<void> {
    const outcome = await this.#together(some.map(({ slice }) => slice))
    for (const { slice, resolve, reject } of some) {
      if (outcome === 'stored') resolve()
      else if (outcome !== 'one by one') reject(outcome.error)
      // Beside the lanes, so that slices which take long hold up no others.
      else void this.#fewAlone(() => this.#alone(slice)).then(resolve, reject)
    }
    this.#running--
    this.#begin()
  }

  /**
   * Whatever is wrong with one slice is found out, and mended, when it is stored alone: an error with an answer of the database may
   * be about only one.
   */
  async #together(
    slices: readonly Slice[],
    take: TakeIn = takeTogether,
  ): Promise<'stored' | 'one by one' | { error: unknown }> {
    try {
      const tally = await takeIn(this.#deps, (tx) => storeSlices(tx, slices, take, this.#deps))
      if (tally instanceof LedgerRewound) return 'one by one'
      tell(tally, this.#deps)
      return 'stored'
    } catch (error) {
      if (isWithoutAnswer(error)) return { error }
      return isOfSomeRows(error) && take !== takeApart ? this.#together(slices, takeApart) : 'one by one'
    }
  }

  #alone(slice: Slice): Promise<void> {
    const by = (take: TakeIn) => (tx: Transaction, some: readonly ReadCommand[]) =>
      storeSlices(tx, [sliceOf(slice, some)], take, this.#deps)
    return store(slice.reads, { together: by(takeTogether), apart: by(takeApart) }, this.#deps)
  }
}
