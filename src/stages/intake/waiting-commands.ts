import { isLocked, type Transaction } from '../../platform/postgres/postgres.ts'
import type { Rounds } from '../../platform/postgres/rounds.ts'
import type { SealingKeys } from '../../platform/seal.ts'
import { nameOf, type Origin, openDeadLetter, sealRecord } from './dead-letter.ts'
import { type ParsedCommand, type ReadDeps, readRecord } from './parse-command.ts'
import { lockStanding } from './sql/offsets.ts'
import {
  boundLockWaits,
  firstWaiting,
  keepWaiting,
  merchantsWaiting,
  takeWaiting,
  type WaitingRow,
  whoWaits,
} from './sql/waiting.ts'
import {
  type IntakeTally,
  type Portion,
  type ReadCommand,
  type StoreDeps,
  store,
  storeReads,
} from './store-batch.ts'

/** Taken in by one transaction. */
const AT_ONCE = 500
/** While it waits for locks, the partition waits for it. */
const LOCKS_MS = '200'
const EVERY_MS = 1_000

/** Whom a record is about; null: nobody here. */
export function merchantOf({ parsed }: ReadCommand): string | null {
  switch (parsed.kind) {
    case 'payout':
      return parsed.command.merchantId
    case 'cancel':
      return parsed.merchantId
    case 'batch':
      return parsed.declaration.merchantId
    case 'dead':
      return null
  }
}

/** Of the merchants of these records, those of whom earlier ones of the partition wait: theirs wait behind them. */
export async function waitAlready(
  tx: Transaction,
  { topic, partition }: Origin,
  reads: readonly ReadCommand[],
): Promise<ReadonlySet<string | null>> {
  const merchantIds = [...new Set(reads.map(merchantOf).filter((id) => id !== null))]
  const waiting = await tx.run(merchantsWaiting, { topic, partition, merchantIds })
  return new Set(waiting.map(({ merchantId }) => merchantId))
}

/** Keeps records of one partition in the ledger, to be taken in later in their order. */
export async function setAside(
  tx: Transaction,
  reads: readonly ReadCommand[],
  keys: SealingKeys,
): Promise<void> {
  const [first] = reads
  if (!first) return
  await tx.run(keepWaiting, {
    ...first.origin,
    merchantIds: reads.map((read) => merchantOf(read) as string),
    offsets: reads.map(({ record }) => record.offset),
    origins: reads.map(({ record, origin }) => nameOf(record, origin)),
    sealeds: reads.map(({ record, origin }) => sealRecord(record, origin, keys)),
  })
}

export type WaitingDeps = StoreDeps & ReadDeps & { rounds: Rounds<WaitingKey> }

/**
 * Takes in some of what waits, of each merchant by itself: while its locks are held still, or it cannot be stored, the next
 * merchant has its turn. Returns how many ms to wait before the next turn. Throws where the database fails.
 */
export async function processWaiting(deps: WaitingDeps): Promise<number> {
  const { ledger, log, rounds } = deps
  let isMore = false
  await rounds.go(
    await ledger.db.run(whoWaits, {}),
    async (key) => {
      if (await takeSome(key, deps)) isMore = true
    },
    (key, error) => log.error({ err: error, ...key }, 'could not apply waiting commands'),
  )
  return isMore ? 0 : EVERY_MS
}

type WaitingKey = { merchantId: string; topic: string; partition: number }

/** False: its locks are held still. */
async function takeSome(key: WaitingKey, deps: WaitingDeps): Promise<boolean> {
  const rows = await deps.ledger.db.run(firstWaiting, { ...key, limit: AT_ONCE })
  const reads: WaitingRead[] = []
  for (const row of rows) reads.push(await readAgain(key, row, deps))
  try {
    await store(new Waiting(key, reads, deps), deps)
    return true
  } catch (error) {
    if (isLocked(error)) return false
    throw error
  }
}

async function readAgain(
  { topic, partition }: WaitingKey,
  { position, logId, recordOffset: offset, origin: name, sealed }: WaitingRow,
  deps: WaitingDeps,
): Promise<WaitingRead> {
  const origin = { topic, partition, logId }
  const original = openDeadLetter(sealed, name, deps.keys.sealing)
  if (original.kind !== 'original') throw new Error(`what waits at position ${position} is no whole record`)
  const record = { ...original, offset, timestamp: 0 }
  return { origin, record, position, parsed: await readRecord(record, origin, deps) }
}

type WaitingRead = ReadCommand & { position: bigint }

/** Some of what waits of one merchant in one partition. */
class Waiting implements Portion {
  readonly reads: readonly WaitingRead[]
  readonly #key: WaitingKey
  readonly #deps: StoreDeps

  constructor(key: WaitingKey, reads: readonly WaitingRead[], deps: StoreDeps) {
    this.reads = reads
    this.#key = key
    this.#deps = deps
  }

  /** Under the partition's lock, so that nothing of the merchant is taken in meanwhile that came behind it. */
  async storeBatch(tx: Transaction): Promise<IntakeTally> {
    await tx.run(lockStanding, this.#key)
    const positions = this.reads.map(({ position }) => position)
    const origins = this.reads.map(({ record, origin }) => nameOf(record, origin))
    const found = await tx.run(takeWaiting, { ...this.#key, positions, origins })
    const taken = new Set(found.map(({ position }) => position))
    await tx.run(boundLockWaits, { ms: LOCKS_MS })
    return storeReads(
      tx,
      this.reads.filter(({ position }) => taken.has(position)),
      this.#deps,
    )
  }

  apart(): null {
    return null
  }

  part(begin: number, end: number): Portion {
    return new Waiting(this.#key, this.reads.slice(begin, end), this.#deps)
  }

  as(parsed: ParsedCommand): Portion {
    const reads = this.reads.map((read) => ({ ...read, parsed }))
    return new Waiting(this.#key, reads, this.#deps)
  }
}
