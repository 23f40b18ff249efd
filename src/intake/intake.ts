import { type Ledger, storeOutbox } from '../ledger/ledger.ts'
import type { Decoded } from '../platform/kafka/codec.ts'
import type { Partition } from '../platform/kafka/consumer-session.ts'
import type { Standing } from '../platform/kafka/places.ts'
import { type IncomingRecord, type RecordBatch, readHeader } from '../platform/kafka/records.ts'
import type { Logger } from '../platform/log.ts'
import type { Counter } from '../platform/metrics.ts'
import { blame, isOutOfTime, TRIES_ALONE, type Transaction } from '../platform/postgres.ts'
import { readTraceparent } from '../platform/traceparent.ts'
import { type AcceptKeys, accept } from './accept.ts'
import { deadLetter, type Origin } from './dead-letter.ts'
import { lockBeforeCancels, storeCancels } from './overtaken.ts'
import { type Terms, type Understood, understand } from './read.ts'
import { declareBatches } from './sql/batches.ts'
import { lockStanding, moveOffset } from './sql/offsets.ts'

export type IntakeDeps = {
  ledger: Ledger
  terms: Terms
  keys: AcceptKeys
  /** Throws only when the registry cannot be asked; bad bytes are a value. */
  decode: (value: Buffer | null) => Promise<Decoded>
  log: Logger
  counted: Counter<'outcome'>
}

/** The ledger stands before a batch that was fetched for it: it has forgotten commands, which must be read again first. */
class LedgerForgot extends Error {
  constructor({ topic, partition }: Partition, expected: Standing, found: Standing | undefined) {
    super(
      `the ledger has read partition ${partition} of ${topic} up to ${found ? inWords(found) : 'nothing'}, and had read ` +
        `it up to ${inWords(expected)}: it was set back (a failover, or a restore), so it is read again from there`,
    )
  }
}

const inWords = ({ offset, logId }: Standing): string =>
  logId === null ? `offset ${offset}` : `offset ${offset} of log ${logId}`

type Read = { record: IncomingRecord; understood: Understood }
/** How many commands came to what, and why each of the dead ones is. */
type Tally = { accepted: number; repeated: number; contradicting: number; dead: string[] }

/** How many records one transaction takes: larger ones gain nothing and hold locks for longer. */
const CHUNK = 500

/** Records that one transaction takes: the ledger stands at `from` before, and at `until` after. */
type Slice = { reads: readonly Read[]; from: bigint; until: bigint }

/**
 * Takes one fetched batch of commands in. Resolves once everything is in the ledger with its offsets;
 * rejects when the database or the registry is down, or the ledger was set back: then the ledger is to be asked where
 * it stands, and what follows there handed in.
 */
export async function takeIn(batch: RecordBatch, deps: IntakeDeps): Promise<void> {
  const { topic, partition, stored, records, nextOffset } = batch
  const origin = { topic, partition, logId: stored.logId }
  let from = stored.offset
  for (let begin = 0; begin < records.length; begin += CHUNK) {
    const reads: Read[] = []
    for (const record of records.slice(begin, begin + CHUNK)) {
      reads.push({ record, understood: await read(record, origin, deps) })
    }
    const until = records[begin + CHUNK]?.offset ?? nextOffset
    await store(origin, { reads, from, until }, deps)
    from = until
  }
}

async function read(record: IncomingRecord, origin: Origin, deps: IntakeDeps): Promise<Understood> {
  const { unreadable, offset } = record
  if (!unreadable) return understand(await deps.decode(record.value), deps.terms)
  const { topic, partition } = origin
  deps.log.error({ topic, partition, offset, ...unreadable }, 'what stands in Kafka cannot be read')
  return { kind: 'dead', reason: unreadable.reason }
}

/**
 * One transaction: payouts, history, outbox and the batch's offsets. Where the database itself refuses
 * the data, or is not through with it in time, halves are tried down to the single record, which is dead-lettered if it
 * is refused: one bad record never stops a partition.
 */
async function store(origin: Origin, slice: Slice, deps: IntakeDeps, triesAlone = 1): Promise<void> {
  try {
    const tally = await deps.ledger.db.transaction('take in commands', (tx) =>
      storeSlice(tx, origin, slice, deps),
    )
    deps.counted.inc({ outcome: 'accepted' }, tally.accepted)
    deps.counted.inc({ outcome: 'repeated' }, tally.repeated)
    deps.counted.inc({ outcome: 'contradicts' }, tally.contradicting)
    deps.counted.inc({ outcome: 'dead-lettered' }, tally.dead.length)
    if (tally.dead.length > 0) {
      const { topic, partition } = origin
      deps.log.warn(
        { topic, partition, count: tally.dead.length, reasons: [...new Set(tally.dead)] },
        'commands were dead-lettered: payoutd dlq list shows them',
      )
    }
  } catch (error) {
    const fault = blame(error)
    const { reads, from, until } = slice
    const isTooMuch = isOutOfTime(error) && reads.length > 1
    if ((fault === 'database' && !isTooMuch) || error instanceof LedgerForgot) throw error
    if (reads.length > 1) {
      const middle = Math.ceil(reads.length / 2)
      const between = (reads[middle] as Read).record.offset
      await store(origin, { reads: reads.slice(0, middle), from, until: between }, deps)
      await store(origin, { reads: reads.slice(middle), from: between, until }, deps)
      return
    }
    const [read] = reads as [Read]
    if (read.understood.kind === 'dead') throw error
    if (fault === 'unclear' && triesAlone < TRIES_ALONE) {
      await store(origin, slice, deps, triesAlone + 1)
      return
    }
    deps.log.warn({ err: error, ...position(origin, read) }, 'the database refuses this command')
    const dead: Read = { ...read, understood: { kind: 'dead', reason: 'refused-by-database' } }
    await store(origin, { reads: [dead], from, until }, deps)
  }
}

const position = ({ topic, partition }: Origin, { record }: Read) => ({
  topic,
  partition,
  offset: record.offset,
})

async function storeSlice(
  tx: Transaction,
  origin: Origin,
  { reads: all, from, until }: Slice,
  deps: IntakeDeps,
): Promise<Tally> {
  const { topic, partition, logId } = origin
  const [stands] = await tx.run(lockStanding, { topic, partition })
  if (!stands || stands.offset < from || stands.logId !== logId) {
    throw new LedgerForgot(origin, { offset: from, logId }, stands)
  }
  // Another consumer of the partition has stored it.
  if (stands.offset >= until) return { accepted: 0, repeated: 0, contradicting: 0, dead: [] }
  const reads = all.filter(({ record }) => record.offset >= stands.offset)
  await lockBeforeCancels(
    tx,
    reads.map(({ understood }) => understood),
  )

  const arrivals = reads.flatMap(({ record, understood }) =>
    understood.kind === 'payout'
      ? [{ ...understood, traceparent: readTraceparent(readHeader(record.headers, 'traceparent')) }]
      : [],
  )
  const { fresh, contradicting } = await accept(tx, deps.ledger, deps.keys, arrivals)
  const cancels = reads.flatMap(({ understood }) => (understood.kind === 'cancel' ? [understood] : []))
  await storeCancels(tx, deps.ledger, cancels)
  await storeDeclarations(tx, reads)
  const dead = reads.flatMap(({ record, understood }) =>
    understood.kind === 'dead' ? [{ record, reason: understood.reason }] : [],
  )
  const { topics } = deps.ledger
  await storeOutbox(
    tx,
    dead.map(({ record, reason }) => deadLetter(record, origin, reason, topics, deps.keys.sealing)),
  )
  await tx.run(moveOffset, { topic, partition, nextOffset: until })
  const repeated = arrivals.length - fresh - contradicting
  return { accepted: fresh, repeated, contradicting, dead: dead.map(({ reason }) => reason) }
}

async function storeDeclarations(tx: Transaction, reads: readonly Read[]): Promise<void> {
  const batches = reads.flatMap(({ understood }) =>
    understood.kind === 'batch' ? [understood.declaration] : [],
  )
  if (batches.length === 0) return
  await tx.run(declareBatches, {
    merchantIds: batches.map(({ merchantId }) => merchantId),
    batchIds: batches.map(({ batchId }) => batchId),
    rows: batches.map(({ rows }) => rows),
    amounts: batches.map(({ amount }) => amount),
    refused: batches.map(({ refused }) => refused),
    fileHashes: batches.map(({ fileHash }) => fileHash),
    declaredAts: batches.map(({ declaredAt }) => declaredAt),
  })
}
