import type { IncomingRecord, RecordBatch } from '../../platform/kafka/records.ts'
import { isLocked, type Transaction } from '../../platform/postgres/postgres.ts'
import type { Origin } from './dead-letter.ts'
import { fenceAfterRewind, isSetBack, rewindInWords } from './offset-rewind.ts'
import { merchantOf, type ReadCommand, type ReadDeps, readRecord } from './parse-command.ts'
import { lockStanding, moveOffset, type Stands } from './sql/offsets.ts'
import { backToMark, boundLockWaits, markApart } from './sql/waiting.ts'
import { type IntakeTally, LedgerRewound, type StoreDeps, store, storeReads } from './store-batch.ts'
import { setAside, waitAlready } from './waiting-commands.ts'

export type IntakeDeps = StoreDeps & ReadDeps

/** How many records one transaction takes: larger ones gain nothing and hold locks for longer. */
const CHUNK = 500

/** How many records are read side by side: each may have a schema of its own, which intake asks the registry for. */
const READ_AT_ONCE = 25

/** Longer than any of payoutd's transactions keeps a merchant's payouts locked. */
const LOCKS_MS = '1000'
/** The wait for each of several merchants, one after the other. */
const LOCKS_OF_EACH_MS = '200'

/** Records of a partition: the ledger is at `from` before, and at `until` after. `epoch`: see Standing. */
type Slice = {
  origin: Origin
  reads: readonly ReadCommand[]
  from: bigint
  until: bigint
  epoch: number | null
}

/**
 * Stores one fetched batch of commands. Resolves once everything is in the ledger with its offsets. Rejects when the database
 * or the registry is down, or the ledger was set back: the caller then asks the ledger for its position, and hands over what
 * follows there. Commands of a merchant whose locks are held wait in the ledger (`processWaiting`).
 */
export async function processBatch(batch: RecordBatch, deps: IntakeDeps): Promise<void> {
  const { topic, partition, stored, records, nextOffset } = batch
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
        parsed: await readRecord(record, origin, deps),
      }))
      reads.push(...(await Promise.all(some)))
    }
    const next = records[begin + CHUNK]
    const until = next?.offset ?? nextOffset
    const epoch = next ? epochBetween(chunk.at(-1), next) : (batch.epoch ?? null)
    const slice = { origin, reads, from, until, epoch }
    const by = (take: TakeIn) => (tx: Transaction, some: readonly ReadCommand[]) =>
      storeSlice(tx, sliceOf(slice, some), take, deps)
    await store(reads, { together: by(takeTogether), apart: by(takeApart) }, deps)
    from = until
  }
}

/** The epoch of the offsets between two records; null: not known, because it may be that of either. */
const epochBetween = (before: IncomingRecord | undefined, next: IncomingRecord): number | null =>
  before?.leaderEpoch === next.leaderEpoch ? (next.leaderEpoch ?? null) : null

/** The slice of some consecutive records. */
function sliceOf({ origin, reads, from, until, epoch }: Slice, some: readonly ReadCommand[]): Slice {
  const [first, last] = [some[0]?.record, some.at(-1)?.record]
  const next = last && reads.find(({ record }) => record.offset > last.offset)?.record
  return {
    origin,
    reads: some,
    from: first && first.offset !== reads[0]?.record.offset ? first.offset : from,
    until: next?.offset ?? until,
    epoch: next ? epochBetween(last, next) : epoch,
  }
}

type TakeIn = (tx: Transaction, reads: readonly ReadCommand[], deps: IntakeDeps) => Promise<IntakeTally>

async function storeSlice(
  tx: Transaction,
  { origin, reads, from, until, epoch }: Slice,
  take: TakeIn,
  deps: IntakeDeps,
): Promise<IntakeTally | LedgerRewound> {
  const { topic, partition, logId } = origin
  const [stands] = await tx.run(lockStanding, { topic, partition })
  if (!stands || stands.offset < from || stands.logId !== logId)
    return rewound(tx, origin, from, stands, deps)
  // Another consumer of the partition has stored the slice.
  if (stands.offset >= until) return NOTHING
  const unstored = reads.filter(({ record }) => record.offset >= stands.offset)
  const waiting = await waitAlready(tx, origin, unstored)
  const late = unstored.filter((read) => waiting.has(merchantOf(read)))
  await setAside(tx, late, deps.keys.sealing)
  const free = unstored.filter((read) => !waiting.has(merchantOf(read)))
  const tally = await take(tx, free, deps)
  await tx.run(moveOffset, { topic, partition, nextOffset: until, epoch })
  return { ...tally, waiting: tally.waiting + late.length }
}

/** Throws the error if it fences nobody. Returns it otherwise, so that the caller commits the fences before it throws. */
async function rewound(
  tx: Transaction,
  origin: Origin,
  from: bigint,
  stands: Stands | undefined,
  { ledger, terms }: IntakeDeps,
): Promise<LedgerRewound> {
  const known = { offset: from, logId: origin.logId }
  const reason = rewindInWords(origin, known, stands)
  if (!isSetBack(known, stands)) throw new LedgerRewound(reason)
  try {
    await fenceAfterRewind(tx, reason, { ledger, merchantIds: [...terms.keys()] })
  } catch (cause) {
    // The next process that asks for the starting offset fences them before it reads anything.
    throw new LedgerRewound(reason, { cause })
  }
  return new LedgerRewound(reason)
}

const takeTogether: TakeIn = async (tx, reads, deps) => {
  await tx.run(boundLockWaits, { ms: LOCKS_MS })
  return storeReads(tx, reads, deps)
}

/** Sets aside the commands of merchants whose locks are held, and stores those of the others. */
const takeApart: TakeIn = async (tx, reads, deps) => {
  await tx.run(boundLockWaits, { ms: LOCKS_OF_EACH_MS })
  const byMerchant = [...Map.groupBy(reads, merchantOf)].sort(([one], [other]) =>
    (one ?? '') < (other ?? '') ? -1 : 1,
  )
  let all = NOTHING
  for (const [merchantId, theirs] of byMerchant) {
    await tx.run(markApart, {})
    try {
      all = both(all, await storeReads(tx, theirs, deps))
    } catch (error) {
      if (!isLocked(error) || merchantId === null) throw error
      await tx.run(backToMark, {})
      await setAside(tx, theirs, deps.keys.sealing)
      all = { ...all, waiting: all.waiting + theirs.length }
      deps.log.warn({ merchantId, count: theirs.length, err: error }, SET_ASIDE)
    }
  }
  return all
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
  'somebody holds database locks on rows of this merchant, so its commands wait in the ledger until the locks are free; ' +
  'other merchants are not affected'
