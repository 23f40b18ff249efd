import type { Partition } from '../../platform/kafka/consumer-session.ts'
import type { IncomingRecord } from '../../platform/kafka/records.ts'
import { mapKey } from '../../platform/map-key.ts'
import { isOfSomeRows } from '../../platform/postgres/faults.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import type { Origin } from './dead-letter.ts'
import { fenceAfterRewind, isSetBack, rewindInWords } from './offset-rewind.ts'
import { merchantOf, type ReadCommand, type ReadDeps } from './parse-command.ts'
import { lockStanding, moveOffset, type Stands } from './sql/offsets.ts'
import { backToMark, markApart } from './sql/waiting.ts'
import { type IntakeTally, LedgerRewound, type StoreDeps, storeReads } from './store-batch.ts'
import { heldLocks, keepCancelsAway, takeTurn, waitForTurns } from './take-turn.ts'
import { setAside, waitAlready } from './waiting-commands.ts'

/** Records of a partition: the ledger is at `from` before, and at `until` after. `epoch`: see Standing. */
export type Slice = {
  origin: Origin
  reads: readonly ReadCommand[]
  from: bigint
  until: bigint
  epoch: number | null
}

/** The slice of some consecutive records. */
export function sliceOf({ origin, reads, from, until, epoch }: Slice, some: readonly ReadCommand[]): Slice {
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

const keyOf = ({ topic, partition }: Partition): string => mapKey(topic, partition)

/** The epoch of the offsets between two records; null: not known, because it may be that of either. */
export const epochBetween = (before: IncomingRecord | undefined, next: IncomingRecord): number | null =>
  before?.leaderEpoch === next.leaderEpoch ? (next.leaderEpoch ?? null) : null

type SliceDeps = StoreDeps & Pick<ReadDeps, 'terms'>

export type TakeIn = (tx: Transaction, reads: readonly ReadCommand[], deps: SliceDeps) => Promise<IntakeTally>

/**
 * Stores slices of different partitions. If the ledger is not where one of them begins, it throws, or returns the reason if it was
 * the only slice: what fences its merchants must be committed.
 */
export async function storeSlices(
  tx: Transaction,
  slices: readonly Slice[],
  take: TakeIn,
  deps: SliceDeps,
): Promise<IntakeTally | LedgerRewound> {
  const standing = new Map(
    (await tx.run(lockStanding, { partitions: slices.map(({ origin }) => origin) })).map((row) => [
      keyOf(row),
      row,
    ]),
  )
  const unstored: Slice[] = []
  for (const slice of slices) {
    const { origin, from, until } = slice
    const stands = standing.get(keyOf(origin))
    if (!stands || stands.offset < from || stands.logId !== origin.logId) {
      if (slices.length > 1)
        throw new LedgerRewound('one partition of several is not where its records begin')
      return rewound(tx, origin, from, stands, deps)
    }
    if (slice.reads.some((read) => isOfLaterLeader(read, stands)))
      throw new LedgerRewound('another consumer stored records that Kafka has lost since, in place of these')
    // Otherwise another consumer of the partition has stored the slice.
    if (stands.offset < until)
      unstored.push({ ...slice, reads: slice.reads.filter(({ record }) => record.offset >= stands.offset) })
  }
  if (unstored.length === 0) return NOTHING
  const reads = unstored.flatMap(({ reads }) => reads)
  const isLate = await waitAlready(tx, reads)
  const late = reads.filter(isLate)
  const tally = await take(
    tx,
    reads.filter((read) => !isLate(read)),
    deps,
  )
  // Last, because it may lock payouts, which nobody may hold who waits for turns.
  const waiting = await setAside(tx, late, deps)
  await tx.run(moveOffset, {
    moved: unstored.map(({ origin, until, epoch }) => ({ ...origin, nextOffset: until, epoch })),
  })
  return { ...tally, waiting: tally.waiting + waiting }
}

/** A record before the ledger's position, of a later leader than what was stored there. */
const isOfLaterLeader = ({ record }: ReadCommand, { offset, epoch }: Stands): boolean =>
  record.offset < offset && (epoch ?? null) !== null && (record.leaderEpoch ?? 0) > (epoch as number)

/** Throws the error if it fences nobody. Returns it otherwise, so that the caller commits the fences before it throws. */
async function rewound(
  tx: Transaction,
  origin: Origin,
  from: bigint,
  stands: Stands | undefined,
  { ledger, terms }: SliceDeps,
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

export const takeTogether: TakeIn = async (tx, reads, deps) => {
  await takeTurn(tx, reads.map(merchantOf))
  return storeReads(tx, reads, deps)
}

/** Sets aside the commands of merchants whose rows are locked, or of whom a statement is cancelled, and stores those of the others. */
export const takeApart: TakeIn = async (tx, reads, deps) => {
  const held = await heldLocks(tx, reads)
  const isHeld = (read: ReadCommand) => held.has(merchantOf(read) ?? '')
  const others = reads.filter((read) => !isHeld(read))
  await waitForTurns(tx, others.map(merchantOf))
  const tally = await storeApart(tx, others, deps, { failures: 0 })
  const waiting = await setAside(tx, reads.filter(isHeld), deps)
  return { ...tally, waiting: tally.waiting + waiting }
}

/** How long it may wait for a lock while others wait for its turns, after so many such waits were in vain. */
const locksMs = (failures: number): number => (failures < 3 ? 100 : failures < 50 ? 10 : 1)

/** If it fails for some rows, whichever they are, tries halves of the merchants down to the one whose commands must wait. */
async function storeApart(
  tx: Transaction,
  reads: readonly ReadCommand[],
  deps: SliceDeps,
  waited: { failures: number },
): Promise<IntakeTally> {
  await tx.run(markApart, {})
  try {
    await keepCancelsAway(tx, reads.map(merchantOf), locksMs(waited.failures))
    return await storeReads(tx, reads, deps)
  } catch (error) {
    const merchants = [...new Set(reads.map(merchantOf))]
    if (!isOfSomeRows(error) || merchants.every((merchantId) => merchantId === null)) throw error
    await tx.run(backToMark, {})
    waited.failures++
    if (merchants.length === 1) {
      return { ...NOTHING, waiting: await setAside(tx, reads, deps) }
    }
    const first = new Set(merchants.slice(0, Math.ceil(merchants.length / 2)))
    const isFirst = (read: ReadCommand) => first.has(merchantOf(read))
    return both(
      await storeApart(tx, reads.filter(isFirst), deps, waited),
      await storeApart(
        tx,
        reads.filter((read) => !isFirst(read)),
        deps,
        waited,
      ),
    )
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
