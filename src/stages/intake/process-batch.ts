import type { IncomingRecord } from '../../platform/kafka/records.ts'
import { isLocked, type Transaction } from '../../platform/postgres/postgres.ts'
import type { Origin } from './dead-letter.ts'
import { fenceAfterRewind, isSetBack, rewindInWords } from './offset-rewind.ts'
import type { ParsedCommand, ReadDeps } from './parse-command.ts'
import { lockStanding, moveOffset, type Stands } from './sql/offsets.ts'
import { backToMark, boundLockWaits, markApart } from './sql/waiting.ts'
import {
  type IntakeTally,
  LedgerRewound,
  type Portion,
  type ReadCommand,
  type StoreDeps,
  storeReads,
} from './store-batch.ts'
import { merchantOf, setAside, waitAlready } from './waiting-commands.ts'

/** Longer than anybody who works with a merchant's payouts keeps them locked. */
const LOCKS_MS = '1000'
/** For each of several merchants, one after the other. */
const LOCKS_OF_EACH_MS = '200'

/** Records of a partition: the ledger stands at `from` before, and at `until` after. `epoch`: see Standing. */
type Slice = { reads: readonly ReadCommand[]; from: bigint; until: bigint; epoch: number | null }

/** The epoch of whatever stands between two records; null: not known, as it may be that of either. */
export const epochBetween = (before: IncomingRecord | undefined, next: IncomingRecord): number | null =>
  before?.leaderEpoch === next.leaderEpoch ? (next.leaderEpoch ?? null) : null

type FetchedDeps = StoreDeps & Pick<ReadDeps, 'terms'>

/** A slice of what was fetched. `isApart`: merchants whose locks are held are set aside, and the others taken in. */
export class FetchedBatch implements Portion {
  readonly reads: readonly ReadCommand[]
  readonly #origin: Origin
  readonly #slice: Slice
  readonly #deps: FetchedDeps
  readonly #isApart: boolean

  constructor(origin: Origin, slice: Slice, deps: FetchedDeps, isApart = false) {
    this.reads = slice.reads
    this.#origin = origin
    this.#slice = slice
    this.#deps = deps
    this.#isApart = isApart
  }

  async storeBatch(tx: Transaction): Promise<IntakeTally | LedgerRewound> {
    const { topic, partition, logId } = this.#origin
    const { from, until, epoch } = this.#slice
    const [stands] = await tx.run(lockStanding, { topic, partition })
    if (!stands || stands.offset < from || stands.logId !== logId) return this.#forgot(tx, stands)
    // Another consumer of the partition has stored it.
    if (stands.offset >= until) return NOTHING
    const reads = this.reads.filter(({ record }) => record.offset >= stands.offset)
    const tally = await this.#take(tx, reads)
    await tx.run(moveOffset, { topic, partition, nextOffset: until, epoch })
    return tally
  }

  /** Rejects where nobody is fenced; returned, the error is for who has committed the fences. */
  async #forgot(tx: Transaction, stands: Stands | undefined): Promise<LedgerRewound> {
    const known = { offset: this.#slice.from, logId: this.#origin.logId }
    const reason = rewindInWords(this.#origin, known, stands)
    if (!isSetBack(known, stands)) throw new LedgerRewound(reason)
    const { ledger, terms } = this.#deps
    try {
      await fenceAfterRewind(tx, reason, { ledger, merchantIds: [...terms.keys()] })
    } catch (cause) {
      // Whoever asks next where the partition begins fences them, and reads nothing before.
      throw new LedgerRewound(reason, { cause })
    }
    return new LedgerRewound(reason)
  }

  async #take(tx: Transaction, reads: readonly ReadCommand[]): Promise<IntakeTally> {
    const waiting = await waitAlready(tx, this.#origin, reads)
    const late = reads.filter((read) => waiting.has(merchantOf(read)))
    await setAside(tx, late, this.#deps.keys.sealing)
    const free = reads.filter((read) => !waiting.has(merchantOf(read)))
    await tx.run(boundLockWaits, { ms: this.#isApart ? LOCKS_OF_EACH_MS : LOCKS_MS })
    const tally = this.#isApart ? await this.#takeEach(tx, free) : await storeReads(tx, free, this.#deps)
    return { ...tally, waiting: tally.waiting + late.length }
  }

  async #takeEach(tx: Transaction, reads: readonly ReadCommand[]): Promise<IntakeTally> {
    const byMerchant = [...Map.groupBy(reads, merchantOf)].sort(([one], [other]) =>
      (one ?? '') < (other ?? '') ? -1 : 1,
    )
    let all = NOTHING
    for (const [merchantId, theirs] of byMerchant) {
      await tx.run(markApart, {})
      try {
        all = both(all, await storeReads(tx, theirs, this.#deps))
      } catch (error) {
        if (!isLocked(error) || merchantId === null) throw error
        await tx.run(backToMark, {})
        await setAside(tx, theirs, this.#deps.keys.sealing)
        all = { ...all, waiting: all.waiting + theirs.length }
        this.#deps.log.warn({ merchantId, count: theirs.length, err: error }, SET_ASIDE)
      }
    }
    return all
  }

  apart(): Portion | null {
    return this.#isApart ? null : new FetchedBatch(this.#origin, this.#slice, this.#deps, true)
  }

  part(begin: number, end: number): Portion {
    const { from, until, epoch } = this.#slice
    const next = this.reads[end]
    const at = (index: number): bigint | undefined => this.reads[index]?.record.offset
    const slice = {
      reads: this.reads.slice(begin, end),
      from: begin === 0 ? from : (at(begin) ?? until),
      until: at(end) ?? until,
      epoch: next ? epochBetween(this.reads[end - 1]?.record, next.record) : epoch,
    }
    return new FetchedBatch(this.#origin, slice, this.#deps)
  }

  as(parsed: ParsedCommand): Portion {
    const reads = this.reads.map((read) => ({ ...read, parsed }))
    return new FetchedBatch(this.#origin, { ...this.#slice, reads }, this.#deps)
  }
}

const NOTHING: IntakeTally = { fresh: [], repeated: 0, contradicting: 0, waiting: 0, dead: [] }

const both = (one: IntakeTally, other: IntakeTally): IntakeTally => ({
  fresh: [...one.fresh, ...other.fresh],
  repeated: one.repeated + other.repeated,
  contradicting: one.contradicting + other.contradicting,
  waiting: one.waiting + other.waiting,
  dead: [...one.dead, ...other.dead],
})

const SET_ASIDE =
  'somebody holds locks of this merchant in the database, so its commands wait in the ledger and are taken in once they are ' +
  'free; those of others go on'
