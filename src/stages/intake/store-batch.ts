import { awaitsRefusal } from '../../domain/commands/refused.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import { type Ledger, storeOutbox } from '../../ledger/ledger.ts'
import type { Logger } from '../../platform/log.ts'
import type { Counter } from '../../platform/metrics.ts'
import { blame, isOfSomeRows, isOutOfTime, TRIES_ALONE } from '../../platform/postgres/faults.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import { deadLetter, type Origin } from './dead-letter.ts'
import { storeCancels } from './early-cancels.ts'
import type { IntakeKeys } from './new-payout.ts'
import { ALL_FENCED } from './offset-rewind.ts'
import type { ReadCommand } from './parse-command.ts'
import { declareBatches } from './sql/batches.ts'
import { storeCommands } from './store-commands.ts'

export type StoreDeps = {
  ledger: Ledger
  keys: IntakeKeys
  log: Logger
  counted: Counter<'outcome'>
}

/**
 * The outcome of each new payout, the number of other commands by kind, and the reason for each dead one. `waiting`: set aside
 * until locks are free.
 */
export type IntakeTally = {
  fresh: CommandOutcome[]
  repeated: number
  contradicting: number
  waiting: number
  dead: { origin: Origin; reason: string }[]
}
type CommandOutcome = 'accepted' | 'rejected' | 'held-with-faults' | 'cancelled'

/** Stores consecutive records, and the position after them. */
type StorePart<Read> = (tx: Transaction, reads: readonly Read[]) => Promise<IntakeTally | LedgerRewound>

/** `apart`: each merchant by itself, so that the locks of one hold up no other. */
type Ways<Read> = { together: StorePart<Read>; apart?: StorePart<Read> }

/**
 * Stores payouts, history, outbox and the ledger's position in one transaction. If the database itself refuses the data, or
 * takes too long, tries halves down to the single record, and dead-letters that if it is refused: one bad record never stops a
 * partition.
 */
export async function store<Read extends ReadCommand>(
  reads: readonly Read[],
  ways: Ways<Read>,
  deps: StoreDeps,
  { way = ways.together, triesAlone = 1 } = {},
): Promise<void> {
  try {
    const stored = await takeIn(deps, (tx) => way(tx, reads))
    if (stored instanceof LedgerRewound) {
      deps.log.error({ reason: stored.message }, ALL_FENCED)
      throw stored
    }
    tell(stored, deps)
  } catch (error) {
    if (ways.apart && way !== ways.apart && isOfSomeRows(error))
      return store(reads, ways, deps, { way: ways.apart, triesAlone })
    const fault = blame(error)
    const isTooMuch = isOutOfTime(error) && reads.length > 1
    if ((fault === 'database' && !isTooMuch) || error instanceof LedgerRewound) throw error
    if (reads.length > 1) {
      const middle = Math.ceil(reads.length / 2)
      await store(reads.slice(0, middle), ways, deps)
      return store(reads.slice(middle), ways, deps)
    }
    const [read] = reads as [Read]
    if (read.parsed.kind === 'dead') throw error
    if (fault === 'unclear' && triesAlone < TRIES_ALONE)
      return store(reads, ways, deps, { way, triesAlone: triesAlone + 1 })
    const { origin, record } = read
    const position = { topic: origin.topic, partition: origin.partition, offset: record.offset }
    deps.log.warn({ err: error, ...position }, 'the database refuses this command')
    return store([{ ...read, parsed: { kind: 'dead', reason: 'refused-by-database' } }], ways, deps)
  }
}

export const takeIn = <Result>(
  { ledger }: StoreDeps,
  work: (tx: Transaction) => Promise<Result>,
): Promise<Result> => ledger.db.transaction('take in commands', work)

/** The ledger's position is before the fetched batch, or in another log: intake must read the records before it first. */
export class LedgerRewound extends Error {}

export function tell(tally: IntakeTally, { counted, log }: StoreDeps): void {
  for (const [outcome, { length }] of Map.groupBy(tally.fresh, (each) => each))
    counted.inc({ outcome }, length)
  counted.inc({ outcome: 'repeated' }, tally.repeated)
  counted.inc({ outcome: 'contradicts' }, tally.contradicting)
  if (tally.waiting > 0) counted.inc({ outcome: 'waiting' }, tally.waiting)
  counted.inc({ outcome: 'dead-lettered' }, tally.dead.length)
  for (const [{ topic, partition }, dead] of Map.groupBy(tally.dead, ({ origin }) => origin))
    log.warn(
      { topic, partition, count: dead.length, reasons: [...new Set(dead.map(({ reason }) => reason))] },
      'commands were dead-lettered: payoutd dlq list shows them',
    )
}

/** Stores what records ask for, in a transaction that has called `takeTurn`. */
export async function storeReads(
  tx: Transaction,
  reads: readonly ReadCommand[],
  { ledger, keys }: StoreDeps,
): Promise<IntakeTally> {
  const requests = reads.flatMap(({ parsed }) => (parsed.kind === 'payout' ? [parsed] : []))
  const { fresh, contradicting } = await storeCommands(tx, ledger, keys, requests)
  const cancels = reads.flatMap(({ parsed }) => (parsed.kind === 'cancel' ? [parsed] : []))
  await storeCancels(tx, ledger, cancels)
  const batches = reads.flatMap(({ parsed }) => (parsed.kind === 'batch' ? [parsed.declaration] : []))
  if (batches.length > 0) await tx.run(declareBatches, { batches })
  const dead = reads.flatMap(({ origin, record, parsed }) =>
    parsed.kind === 'dead' ? [{ origin, record, reason: parsed.reason }] : [],
  )
  await storeOutbox(
    tx,
    dead.map(({ origin, record, reason }) => deadLetter(record, origin, reason, ledger.topics, keys.sealing)),
  )
  return {
    fresh: fresh.map(outcomeOf),
    repeated: requests.length - fresh.length - contradicting.length,
    contradicting: contradicting.length,
    waiting: 0,
    dead: dead.map(({ origin, reason }) => ({ origin, reason })),
  }
}

function outcomeOf(payout: Payout): CommandOutcome {
  if (awaitsRefusal(payout)) return 'held-with-faults'
  const { state } = payout
  return state === 'rejected' || state === 'cancelled' ? state : 'accepted'
}
