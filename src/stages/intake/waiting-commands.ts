import { isLocked, type Transaction } from '../../platform/postgres/postgres.ts'
import type { Rounds } from '../../platform/postgres/rounds.ts'
import type { SealingKeys } from '../../platform/seal.ts'
import { nameOf, type Origin, openDeadLetter, sealRecord } from './dead-letter.ts'
import { merchantOf, type ReadCommand, type ReadDeps, readRecord } from './parse-command.ts'
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
import { type IntakeTally, type StoreDeps, store, storeReads } from './store-batch.ts'

/** One transaction stores at most so many, and reads at most so much of them. */
const AT_ONCE = 500
const BYTES_AT_ONCE = 2_000_000
/** While it waits for locks, the partition waits for it. */
const LOCKS_MS = '200'
const EVERY_MS = 1_000

/** The merchants of these records with earlier commands of the partition waiting. Their new commands wait behind those. */
export async function waitAlready(
  tx: Transaction,
  { topic, partition }: Origin,
  reads: readonly ReadCommand[],
): Promise<ReadonlySet<string | null>> {
  const merchantIds = [...new Set(reads.map(merchantOf).filter((id) => id !== null))]
  const waiting = await tx.run(merchantsWaiting, { topic, partition, merchantIds })
  return new Set(waiting.map(({ merchantId }) => merchantId))
}

/** Keeps records of one partition in the ledger, to be stored as commands later, in their order. */
export async function setAside(
  tx: Transaction,
  reads: readonly ReadCommand[],
  keys: SealingKeys,
): Promise<void> {
  const [first] = reads
  if (!first) return
  const commands = reads.map((read) => ({
    merchantId: merchantOf(read) as string,
    recordOffset: read.record.offset,
    origin: nameOf(read.record, read.origin),
    sealed: sealRecord(read.record, read.origin, keys),
  }))
  await tx.run(keepWaiting, { ...first.origin, commands })
}

export type WaitingDeps = StoreDeps & ReadDeps & { rounds: Rounds<WaitingKey> }

/**
 * Stores some waiting commands, each merchant by itself: if its locks are still held, or they cannot be stored, the next
 * merchant has its turn. Returns how many ms to wait before the next turn. Throws if the database fails.
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

/** False: the locks are still held. */
async function takeSome(key: WaitingKey, deps: WaitingDeps): Promise<boolean> {
  const rows = await deps.ledger.db.run(firstWaiting, {
    ...key,
    ...{ limit: AT_ONCE, bytes: BYTES_AT_ONCE },
  })
  const reads: WaitingRead[] = []
  for (const row of rows) reads.push(await readAgain(key, row, deps))
  try {
    await store(reads, { together: (tx, some) => storeWaiting(tx, key, some, deps) }, deps)
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
  if (original.kind !== 'original')
    throw new Error(`the waiting command at position ${position} does not contain its whole record`)
  const record = { ...original, offset, timestamp: 0 }
  return { origin, record, position, parsed: await readRecord(record, origin, deps) }
}

type WaitingRead = ReadCommand & { position: bigint }

/** Holds the partition's lock, so that no later command of the merchant is stored first. */
async function storeWaiting(
  tx: Transaction,
  key: WaitingKey,
  reads: readonly WaitingRead[],
  deps: StoreDeps,
): Promise<IntakeTally> {
  await tx.run(lockStanding, key)
  const read = reads.map(({ position, record, origin }) => ({ position, origin: nameOf(record, origin) }))
  const taken = new Set((await tx.run(takeWaiting, { ...key, read })).map(({ position }) => position))
  await tx.run(boundLockWaits, { ms: LOCKS_MS })
  return storeReads(
    tx,
    reads.filter(({ position }) => taken.has(position)),
    deps,
  )
}
