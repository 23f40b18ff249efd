import { recordAct } from '../ledger/acts.ts'
import { resealDetails } from '../ledger/details.ts'
import type { PayoutKey } from '../ledger/ledger.ts'
import type { Decided } from '../payout/resolve.ts'
import type { Clock } from '../platform/clock.ts'
import { pause } from '../platform/lifecycle.ts'
import type { Database } from '../platform/postgres.ts'
import { DoesNotOpen, type SealingKeys } from '../platform/seal.ts'
import { storedProofs } from './sql/key-proofs.ts'
import {
  lockSealed,
  replaceSealed,
  retireProofs,
  type SealedWith,
  sealedCallbacks,
  sealedWith,
  waitingDeadLetters,
} from './sql/rotate.ts'

/** How many things each key seals, by its id. */
export type Census = ReadonlyMap<number, number>

export type RotateOptions = {
  /** Payouts a second at most; null: as fast as it goes. */
  rate: number | null
  clock: Clock
  /** Aborted: stops after the transaction under way. */
  signal: AbortSignal
  /** Hears how many payouts were looked at and how many of them sealed anew, until now. */
  onProgress: (lookedAt: number, resealed: number) => void
}

/** `unopened`: those that no key at hand opens, by the key that sealed them; they stay as they are. */
export type Rotated = { resealed: number; unopened: Census; interrupted: boolean }

/** Small enough that a rotation of several stays unnoticed, and a transaction within milliseconds. */
const AT_ONCE = 500

/**
 * Seals the bank details of every payout with the current key, where another one sealed them. Needs no memory:
 * after an interruption the same call goes on, because what is done is passed over.
 */
export async function rotateKeys(db: Database, keys: SealingKeys, options: RotateOptions): Promise<Rotated> {
  const { rate, clock, signal, onProgress } = options
  const unopened = new Map<number, number>()
  let lookedAt = 0
  let resealed = 0
  for await (const page of pages(db)) {
    const began = clock.monotonic()
    const old = page.filter(({ keyId }) => keyId !== keys.current)
    const { opened, closed } = await reseal(db, keys, old)
    for (const keyId of closed) count(unopened, keyId, 1)
    lookedAt += page.length
    resealed += opened
    onProgress(lookedAt, resealed)
    if (rate !== null && opened > 0) {
      await pause(Math.max(0, (opened / rate) * 1_000 - (clock.monotonic() - began)), signal)
    }
    if (signal.aborted) return { resealed, unopened, interrupted: true }
  }
  return { resealed, unopened, interrupted: false }
}

/** What the keys seal in the database: bank details, dead letters on their way to Kafka, and callbacks that wait. */
export async function censusOfKeys(db: Database): Promise<Census> {
  const census = new Map<number, number>()
  for await (const page of pages(db)) for (const { keyId } of page) count(census, keyId, 1)
  for (const statement of [waitingDeadLetters, sealedCallbacks])
    for (const { keyId, count: sealed } of await db.run(statement, {})) count(census, keyId, sealed)
  return census
}

/** The ids of former keys that have been in use and seal nothing in the database any more. */
export async function unusedKeys(db: Database, { current }: SealingKeys, census: Census): Promise<number[]> {
  const proofs = await db.run(storedProofs, {})
  return proofs.map(({ keyId }) => keyId).filter((id) => id !== 0 && id !== current && !census.has(id))
}

/** Forgets that keys were ever in use: payoutd starts without them from now on. */
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

/** How many were sealed anew, and the key ids of those that do not open. */
async function reseal(
  db: Database,
  keys: SealingKeys,
  old: readonly PayoutKey[],
): Promise<{ opened: number; closed: number[] }> {
  if (old.length === 0) return { opened: 0, closed: [] }
  return db.transaction('rotate keys', async (tx) => {
    const closed: number[] = []
    const fresh = (await tx.run(lockSealed, keysOf(old))).flatMap(({ sealed, ...key }) => {
      try {
        return [{ ...key, sealed: resealDetails(key, sealed, keys) }]
      } catch (error) {
        if (!(error instanceof DoesNotOpen)) throw error
        closed.push(error.keyId)
        return []
      }
    })
    await tx.run(replaceSealed, { ...keysOf(fresh), sealeds: fresh.map(({ sealed }) => sealed) })
    return { opened: fresh.length, closed }
  })
}

const keysOf = (payouts: readonly PayoutKey[]) => ({
  merchantIds: payouts.map(({ merchantId }) => merchantId),
  payoutIds: payouts.map(({ payoutId }) => payoutId),
})

function count(census: Map<number, number>, keyId: number, by: number): void {
  census.set(keyId, (census.get(keyId) ?? 0) + by)
}
