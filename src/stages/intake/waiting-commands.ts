import { keyOf, type Ledger } from '../../ledger/ledger.ts'
import { mapKey } from '../../platform/map-key.ts'
import { isOfSomeRows } from '../../platform/postgres/faults.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import type { Rounds } from '../../platform/postgres/rounds.ts'
import { nameOf, openDeadLetter, sealRecord } from './dead-letter.ts'
import { storeCancels } from './early-cancels.ts'
import { merchantOf, type ReadCommand, type ReadDeps, readRecord } from './parse-command.ts'
import { lockStanding } from './sql/offsets.ts'
import {
  backToMark,
  boundLockWaits,
  firstWaiting,
  keepWaiting,
  lockFree,
  lockWaiting,
  markApart,
  merchantsWaiting,
  takeWaiting,
  type WaitingRow,
  whoWaits,
} from './sql/waiting.ts'
import { type IntakeTally, type StoreDeps, store, storeReads, takeIn } from './store-batch.ts'
import { heldLocks, keepCancelsAway, PATIENCE_MS, waitForTurns } from './take-turn.ts'

/** One transaction stores at most so many, and reads at most so much of them. */
const AT_ONCE = 500
const BYTES_AT_ONCE = 2_000_000
const EVERY_MS = 1_000
/** While it waits for a lock, intake of the partition waits, too. */
const LOCKS_MS = 20
const TOLD_AFTER_MS = 10_000

/** Tells of a record whether earlier commands of its merchant in its partition wait: then it waits behind those. */
export async function waitAlready(
  tx: Transaction,
  reads: readonly ReadCommand[],
): Promise<(read: ReadCommand) => boolean> {
  const asked = new Map<string, WaitingKey>()
  for (const read of reads) {
    const key = waitingKey(read)
    if (key) asked.set(inOne(key), key)
  }
  const waiting = new Set((await tx.run(merchantsWaiting, { wanted: [...asked.values()] })).map(inOne))
  return (read) => {
    const key = waitingKey(read)
    return key !== null && waiting.has(inOne(key))
  }
}

function waitingKey(read: ReadCommand): WaitingKey | null {
  const merchantId = merchantOf(read)
  const { topic, partition } = read.origin
  return merchantId === null ? null : { merchantId, topic, partition }
}

const inOne = ({ merchantId, topic, partition }: WaitingKey): string => mapKey(merchantId, topic, partition)

/**
 * Keeps records in the ledger, to be stored as commands later, those of a partition in their order. Returns how many. A cancellation
 * waits for nothing but its own payout: if the ledger has that, no earlier command that waits can be its request. Until a waiting one
 * is stored, no claim takes its payout.
 */
export async function setAside(
  tx: Transaction,
  reads: readonly ReadCommand[],
  { ledger, keys }: StoreDeps,
): Promise<number> {
  const cancelled = await cancelFree(tx, reads, ledger)
  const left = reads.filter((read) => !cancelled.has(read))
  for (const [origin, ofPartition] of Map.groupBy(left, ({ origin }) => origin)) {
    const commands = ofPartition.map((read) => ({
      merchantId: merchantOf(read) as string,
      recordOffset: read.record.offset,
      origin: nameOf(read.record, origin),
      sealed: sealRecord(read.record, origin, keys.sealing),
      cancels: read.parsed.kind === 'cancel' ? read.parsed.payoutId : null,
    }))
    await tx.run(keepWaiting, { ...origin, commands })
  }
  return left.length
}

/** Applies the cancellations of payouts that the ledger has and nobody else has locked. Returns them. */
async function cancelFree(
  tx: Transaction,
  reads: readonly ReadCommand[],
  ledger: Ledger,
): Promise<ReadonlySet<ReadCommand>> {
  const cancels = reads.flatMap((read) =>
    read.parsed.kind === 'cancel' ? [{ read, cancel: read.parsed }] : [],
  )
  if (cancels.length === 0) return new Set()
  await tx.run(markApart, {})
  try {
    await tx.run(boundLockWaits, { ms: String(LOCKS_MS) })
    const free = new Set(
      (await tx.run(lockFree, { payouts: cancels.map(({ cancel }) => cancel) })).map(keyOf),
    )
    const now = cancels.filter(({ cancel }) => free.has(keyOf(cancel)))
    await storeCancels(
      tx,
      ledger,
      now.map(({ cancel }) => cancel),
    )
    return new Set(now.map(({ read }) => read))
  } catch (error) {
    if (!isOfSomeRows(error)) throw error
    await tx.run(backToMark, {})
    return new Set()
  }
}

/** `stuckSince`: by merchant, since when its locks are held, or its statements cancelled; null: that was told. */
export type WaitingDeps = StoreDeps &
  ReadDeps & { rounds: Rounds<WaitingKey>; stuckSince: Map<string, number | null> }

/**
 * Stores some waiting commands, each merchant by itself: if its locks are still held, or they cannot be stored, the next
 * merchant has its turn. Returns how many ms to wait before the next turn. Throws if the database fails.
 */
export async function processWaiting(deps: WaitingDeps): Promise<number> {
  const { ledger, log, rounds, stuckSince } = deps
  let isMore = false
  let patienceMs = PATIENCE_MS
  const waiting = await ledger.db.run(whoWaits, {})
  for (const merchantId of stuckSince.keys())
    if (!waiting.some((each) => each.merchantId === merchantId)) stuckSince.delete(merchantId)
  await rounds.go(
    waiting,
    async (key) => {
      const began = performance.now()
      // One that was locked before, or many, keep the others waiting no longer than a moment each.
      const isStored = await takeSome(key, deps, stuckSince.has(key.merchantId) ? 0 : patienceMs)
      if (isStored) isMore = true
      else patienceMs = Math.max(0, patienceMs - (performance.now() - began))
    },
    (key, error) => log.error({ err: error, ...key }, 'could not apply waiting commands'),
  )
  return isMore ? 0 : EVERY_MS
}

type WaitingKey = { merchantId: string; topic: string; partition: number }

/** False: the locks are still held, or a statement was cancelled. */
async function takeSome(key: WaitingKey, deps: WaitingDeps, patienceMs: number): Promise<boolean> {
  const rows = await deps.ledger.db.run(firstWaiting, {
    ...key,
    ...{ limit: AT_ONCE, bytes: BYTES_AT_ONCE },
  })
  const reads: WaitingRead[] = []
  for (const row of rows) reads.push(await readAgain(key, row, deps))
  // Looked for before the partition's lock is taken, for which intake of all its merchants waits.
  const held = await takeIn(deps, (tx) => heldLocks(tx, reads, patienceMs))
  if (held.size > 0) {
    tellStuck(key, deps)
    return false
  }
  try {
    await store(reads, { together: (tx, some) => storeWaiting(tx, key, some, deps) }, deps)
    deps.stuckSince.delete(key.merchantId)
    return true
  } catch (error) {
    if (!isOfSomeRows(error)) throw error
    tellStuck(key, deps)
    return false
  }
}

/** Says so once, and not of locks that are free again in a moment, as those of a large cancellation are. */
function tellStuck({ merchantId }: WaitingKey, { stuckSince, log }: WaitingDeps): void {
  const now = performance.now()
  const since = stuckSince.get(merchantId)
  if (since === undefined) stuckSince.set(merchantId, now)
  else if (since !== null && now - since > TOLD_AFTER_MS) {
    log.warn({ merchantId }, LOCKED)
    stuckSince.set(merchantId, null)
  }
}

const LOCKED =
  'somebody holds database locks on rows of this merchant, or cancels its statements, so its commands wait in the ledger ' +
  'until that ends; other merchants are not affected'

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
  await tx.run(lockStanding, { partitions: [key] })
  const read = reads.map(({ position, record, origin }) => ({ position, origin: nameOf(record, origin) }))
  const upTo = reads.at(-1)?.position
  if (upTo !== undefined) await tx.run(lockWaiting, { ...key, upTo })
  const taken = new Set((await tx.run(takeWaiting, { ...key, read })).map(({ position }) => position))
  const left = reads.filter(({ position }) => taken.has(position))
  await waitForTurns(tx, left.map(merchantOf))
  await keepCancelsAway(tx, left.map(merchantOf), LOCKS_MS)
  return storeReads(tx, left, deps)
}
