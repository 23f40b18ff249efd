import { awaitsRefusal } from '../../domain/commands/refused.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import { type Ledger, storeOutbox } from '../../ledger/ledger.ts'
import { type IncomingRecord, readHeader } from '../../platform/kafka/records.ts'
import type { Logger } from '../../platform/log.ts'
import type { Counter } from '../../platform/metrics.ts'
import {
  blame,
  isLocked,
  isOutOfTime,
  TRIES_ALONE,
  type Transaction,
} from '../../platform/postgres/postgres.ts'
import { readTraceparent } from '../../platform/traceparent.ts'
import { deadLetter, type Origin } from './dead-letter.ts'
import { lockBeforeCancels, storeCancels } from './early-cancels.ts'
import { ALL_FENCED } from './offset-rewind.ts'
import type { ParsedCommand } from './parse-command.ts'
import { declareBatches } from './sql/batches.ts'
import { type IntakeKeys, storeCommands } from './store-commands.ts'

export type StoreDeps = {
  ledger: Ledger
  keys: IntakeKeys
  log: Logger
  counted: Counter<'outcome'>
}

/** A record, where it came from, and what it asks for. */
export type ReadCommand = { origin: Origin; record: IncomingRecord; parsed: ParsedCommand }

/**
 * What became of each new payout, how many commands were of others, and why each of the dead ones is. `waiting`: set aside
 * until locks are free.
 */
export type IntakeTally = {
  fresh: CommandOutcome[]
  repeated: number
  contradicting: number
  waiting: number
  dead: string[]
}
type CommandOutcome = 'accepted' | 'rejected' | 'held-with-faults' | 'cancelled'

/** Records that one transaction takes, in their order. */
export interface Portion {
  readonly reads: readonly ReadCommand[]
  /** Stores them, and that they are stored. */
  storeBatch(tx: Transaction): Promise<IntakeTally | LedgerRewound>
  /** The same with each merchant by itself, so that locks of one hold up no other; null: there is no such way. */
  apart(): Portion | null
  /** Those from `begin` up to, and without, `end`. */
  part(begin: number, end: number): Portion
  /** The only record, as something else. */
  as(parsed: ParsedCommand): Portion
}

/**
 * One transaction: payouts, history, outbox and where the ledger stands. Where the database itself refuses
 * the data, or is not through with it in time, halves are tried down to the single record, which is dead-lettered if it
 * is refused: one bad record never stops a partition.
 */
export async function store(portion: Portion, deps: StoreDeps, triesAlone = 1): Promise<void> {
  const { reads } = portion
  try {
    const stored = await deps.ledger.db.transaction('take in commands', (tx) => portion.storeBatch(tx))
    if (stored instanceof LedgerRewound) {
      deps.log.error({ reason: stored.message }, ALL_FENCED)
      throw stored
    }
    tell(stored, reads, deps)
  } catch (error) {
    const apart = isLocked(error) ? portion.apart() : null
    if (apart) {
      await store(apart, deps, triesAlone)
      return
    }
    const fault = blame(error)
    const isTooMuch = isOutOfTime(error) && reads.length > 1
    if ((fault === 'database' && !isTooMuch) || error instanceof LedgerRewound) throw error
    if (reads.length > 1) {
      const middle = Math.ceil(reads.length / 2)
      await store(portion.part(0, middle), deps)
      await store(portion.part(middle, reads.length), deps)
      return
    }
    const [read] = reads as [ReadCommand]
    if (read.parsed.kind === 'dead') throw error
    if (fault === 'unclear' && triesAlone < TRIES_ALONE) {
      await store(portion, deps, triesAlone + 1)
      return
    }
    deps.log.warn({ err: error, ...position(read) }, 'the database refuses this command')
    await store(portion.as({ kind: 'dead', reason: 'refused-by-database' }), deps)
  }
}

/** The ledger stands before a batch that was fetched for it, or in another log: what comes first must be read first. */
export class LedgerRewound extends Error {}

function tell(tally: IntakeTally, [first]: readonly ReadCommand[], { counted, log }: StoreDeps): void {
  for (const [outcome, { length }] of Map.groupBy(tally.fresh, (each) => each))
    counted.inc({ outcome }, length)
  counted.inc({ outcome: 'repeated' }, tally.repeated)
  counted.inc({ outcome: 'contradicts' }, tally.contradicting)
  if (tally.waiting > 0) counted.inc({ outcome: 'waiting' }, tally.waiting)
  counted.inc({ outcome: 'dead-lettered' }, tally.dead.length)
  if (tally.dead.length > 0) {
    const { topic, partition } = (first as ReadCommand).origin
    log.warn(
      { topic, partition, count: tally.dead.length, reasons: [...new Set(tally.dead)] },
      'commands were dead-lettered: payoutd dlq list shows them',
    )
  }
}

const position = ({ origin: { topic, partition }, record: { offset } }: ReadCommand) => ({
  topic,
  partition,
  offset,
})

/** Stores what records ask for, within a transaction. */
export async function storeReads(
  tx: Transaction,
  reads: readonly ReadCommand[],
  { ledger, keys }: StoreDeps,
): Promise<IntakeTally> {
  await lockBeforeCancels(
    tx,
    reads.map(({ parsed }) => parsed),
  )
  const arrivals = reads.flatMap(({ record, parsed }) =>
    parsed.kind === 'payout'
      ? [{ ...parsed, traceparent: readTraceparent(readHeader(record.headers, 'traceparent')) }]
      : [],
  )
  const { fresh, contradicting } = await storeCommands(tx, ledger, keys, arrivals)
  const cancels = reads.flatMap(({ parsed }) => (parsed.kind === 'cancel' ? [parsed] : []))
  await storeCancels(tx, ledger, cancels)
  await storeDeclarations(tx, reads)
  const dead = reads.flatMap(({ origin, record, parsed }) =>
    parsed.kind === 'dead' ? [{ origin, record, reason: parsed.reason }] : [],
  )
  await storeOutbox(
    tx,
    dead.map(({ origin, record, reason }) => deadLetter(record, origin, reason, ledger.topics, keys.sealing)),
  )
  return {
    fresh: fresh.map(outcomeOf),
    repeated: arrivals.length - fresh.length - contradicting,
    contradicting,
    waiting: 0,
    dead: dead.map(({ reason }) => reason),
  }
}

function outcomeOf(payout: Payout): CommandOutcome {
  if (awaitsRefusal(payout)) return 'held-with-faults'
  const { state } = payout
  return state === 'rejected' || state === 'cancelled' ? state : 'accepted'
}

async function storeDeclarations(tx: Transaction, reads: readonly ReadCommand[]): Promise<void> {
  const batches = reads.flatMap(({ parsed }) => (parsed.kind === 'batch' ? [parsed.declaration] : []))
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
