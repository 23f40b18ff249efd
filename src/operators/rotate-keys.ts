import type { Decided } from '../domain/payout/resolve.ts'
import { recordAct } from '../ledger/acts.ts'
import type { KeptKey } from '../ledger/callbacks/sql/kept-callbacks.ts'
import { callbackContext, deadLetterContext, detailsContext } from '../ledger/encryption-contexts.ts'
import type { Database, Transaction } from '../platform/postgres/postgres.ts'
import type { Clock } from '../platform/running/clock.ts'
import { pause } from '../platform/running/lifecycle.ts'
import { DoesNotOpen, reseal, type SealingKeys } from '../platform/seal.ts'
import { storedProofs } from './sql/key-proofs.ts'
import {
  lockOldCallbacks,
  lockOldDeadLetters,
  lockOldWaiting,
  lockSealed,
  lockWaitingDeadLetters,
  replaceCallbacks,
  replaceDeadLetters,
  replaceSealed,
  replaceWaiting,
  replaceWaitingDeadLetters,
  retireProofs,
  type SealedWith,
  sealedCallbacks,
  sealedWaiting,
  sealedWith,
  waitingDeadLetters,
} from './sql/rotate.ts'

/** How many things each key seals, by its id. */
export type Census = ReadonlyMap<number, number>

export type RotateOptions = {
  /** At most so many are sealed anew per second; null: as fast as possible. */
  rate: number | null
  clock: Clock
  /** When aborted, it stops after the transaction under way. */
  signal: AbortSignal
  /** Receives how many it has looked at, and how many of them it has sealed anew so far. */
  onProgress: (lookedAt: number, resealed: number) => void
}

/**
 * `resealed`: bank details of payouts; `others`: commands that wait, kept callbacks, and dead letters that wait for Kafka or that
 * it refused.
 * `unopened`: what no available key opens, by the key that sealed it; it stays as it is.
 */
export type Rotated = { resealed: number; others: number; unopened: Census; interrupted: boolean }

/** Small enough that several rotations at once go unnoticed, and that a transaction takes milliseconds. */
const AT_ONCE = 500
/** A dead letter has up to 350 kB. */
const LETTERS_AT_ONCE = 20

/**
 * Seals everything in the database anew that another key than the current one sealed. Keeps no state: after an interruption the
 * same call resumes, because it skips what is done.
 */
export async function rotateKeys(db: Database, keys: SealingKeys, options: RotateOptions): Promise<Rotated> {
  const { rate, clock, signal, onProgress } = options
  const unopened = new Map<number, number>()
  let lookedAt = 0
  const done = { resealed: 0, others: 0 }
  const parts = [
    ['resealed', ofPayouts(db, keys)],
    ['others', ofOthers(db, keys, commands)],
    ['others', ofOthers(db, keys, callbacks)],
    ['others', ofOthers(db, keys, waitingLetters)],
    // After the waiting letters, because Kafka may refuse one of those meanwhile.
    ['others', ofOthers(db, keys, deadLetters)],
  ] as const
  for (const [which, pages] of parts) {
    let began = clock.monotonic()
    for await (const { looked, opened, closed } of pages) {
      for (const keyId of closed) count(unopened, keyId, 1)
      lookedAt += looked
      done[which] += opened
      onProgress(lookedAt, done.resealed + done.others)
      if (rate !== null && opened > 0) {
        await pause(Math.max(0, (opened / rate) * 1_000 - (clock.monotonic() - began)), signal)
      }
      if (signal.aborted) return { ...done, unopened, interrupted: true }
      began = clock.monotonic()
    }
  }
  return { ...done, unopened, interrupted: false }
}

/** What the keys seal in the database: bank details, dead letters on their way to Kafka, waiting callbacks and commands. */
export async function censusOfKeys(db: Database): Promise<Census> {
  const census = new Map<number, number>()
  for await (const page of pages(db)) for (const { keyId } of page) count(census, keyId, 1)
  for (const statement of [waitingDeadLetters, sealedCallbacks, sealedWaiting])
    for (const { keyId, count: sealed } of await db.run(statement, {})) count(census, keyId, sealed)
  return census
}

/** The ids of former keys that were in use and seal nothing in the database any more. */
export async function unusedKeys(db: Database, { current }: SealingKeys, census: Census): Promise<number[]> {
  const proofs = await db.run(storedProofs, {})
  return proofs.map(({ keyId }) => keyId).filter((id) => id !== 0 && id !== current && !census.has(id))
}

/** Deletes the proofs of keys: from now on payoutd starts without them. */
export function retireKeys(db: Database, keyIds: number[], who: Decided): Promise<void> {
  return db.transaction('retire keys', async (tx) => {
    await tx.run(retireProofs, { keyIds })
    const subjects = keyIds.map((id) => `key ${id}`)
    const change = { before: { known: true }, after: { known: false } }
    await recordAct(tx, { command: 'keys retire', ...who, merchantId: null, subjects, ...change })
  })
}

async function* pages(db: Database): AsyncGenerator<SealedWith[]> {
  let last = { merchantId: '', payoutId: '' }
  for (;;) {
    const page = await db.run(sealedWith, { ...last, limit: AT_ONCE })
    const end = page.at(-1)
    if (!end) return
    yield page
    last = end
  }
}

/** How many it looked at and sealed anew, and the key ids of those that do not open. */
type RotatePage = { looked: number; opened: number; closed: number[] }

async function* ofPayouts(db: Database, keys: SealingKeys): AsyncGenerator<RotatePage> {
  for await (const page of pages(db)) {
    const old = page.filter(({ keyId }) => keyId !== keys.current)
    if (old.length === 0) {
      yield { looked: page.length, opened: 0, closed: [] }
      continue
    }
    yield await db.transaction('rotate keys', async (tx) => {
      const { fresh, closed } = resealed(await tx.run(lockSealed, { wanted: old }), detailsContext, keys)
      await tx.run(replaceSealed, { fresh })
      return { looked: page.length, opened: fresh.length, closed }
    })
  }
}

/** Another kind of sealed row: how to find the next page after the last one, and how to store it anew. */
type Sealed<Row> = {
  first: Row
  lock: (tx: Transaction, after: Row, keyId: number) => Promise<(Row & { sealed: Buffer })[]>
  context: (row: Row) => string
  replace: (tx: Transaction, fresh: (Row & { sealed: Buffer })[]) => Promise<unknown>
}

const commands: Sealed<{
  merchantId: string
  topic: string
  partition: number
  position: bigint
  origin: string
}> = {
  first: { merchantId: '', topic: '', partition: 0, position: 0n, origin: '' },
  lock: (tx, { merchantId, topic, partition, position }, keyId) =>
    tx.run(lockOldWaiting, { merchantId, topic, partition, position, keyId, limit: LETTERS_AT_ONCE }),
  context: ({ origin }) => deadLetterContext(origin),
  replace: (tx, fresh) => tx.run(replaceWaiting, { fresh }),
}

const callbacks: Sealed<KeptKey> = {
  first: { merchantId: '', kind: 'payin', orderNo: '', queryHash: Buffer.alloc(0) },
  lock: (tx, { merchantId, kind, orderNo, queryHash }, keyId) =>
    tx.run(lockOldCallbacks, { merchantId, kind, orderNo, queryHash, keyId, limit: AT_ONCE }),
  context: callbackContext,
  replace: (tx, fresh) => tx.run(replaceCallbacks, { fresh }),
}

const deadLetters: Sealed<{ position: bigint; origin: string }> = {
  first: { position: 0n, origin: '' },
  lock: (tx, { position }, keyId) => tx.run(lockOldDeadLetters, { position, keyId, limit: LETTERS_AT_ONCE }),
  context: ({ origin }) => deadLetterContext(origin),
  replace: (tx, fresh) => tx.run(replaceDeadLetters, { fresh }),
}

const waitingLetters: Sealed<{ shard: number; topic: string; position: bigint; origin: string }> = {
  first: { shard: -1, topic: '', position: 0n, origin: '' },
  lock: (tx, { shard, topic, position }, keyId) =>
    tx.run(lockWaitingDeadLetters, { shard, topic, position, keyId, limit: LETTERS_AT_ONCE }),
  context: ({ origin }) => deadLetterContext(origin),
  replace: (tx, fresh) => tx.run(replaceWaitingDeadLetters, { fresh }),
}

async function* ofOthers<Row>(
  db: Database,
  keys: SealingKeys,
  { first, lock, context, replace }: Sealed<Row>,
): AsyncGenerator<RotatePage> {
  let after: Row | undefined = first
  while (after !== undefined) {
    const last: Row = after
    const { end, ...page } = await db.transaction('rotate other seals', async (tx) => {
      const old = await lock(tx, last, keys.current)
      const { fresh, closed } = resealed(old, context, keys)
      if (fresh.length > 0) await replace(tx, fresh)
      return { looked: old.length, opened: fresh.length, closed, end: old.at(-1) }
    })
    after = end
    yield page
  }
}

function resealed<Row>(
  old: readonly (Row & { sealed: Buffer })[],
  context: (row: Row) => string,
  keys: SealingKeys,
): { fresh: (Row & { sealed: Buffer })[]; closed: number[] } {
  const closed: number[] = []
  const fresh = old.flatMap((row) => {
    try {
      return [{ ...row, sealed: reseal(row.sealed, context(row), keys) }]
    } catch (error) {
      if (!(error instanceof DoesNotOpen)) throw error
      closed.push(error.keyId)
      return []
    }
  })
  return { fresh, closed }
}

function count(census: Map<number, number>, keyId: number, by: number): void {
  census.set(keyId, (census.get(keyId) ?? 0) + by)
}
