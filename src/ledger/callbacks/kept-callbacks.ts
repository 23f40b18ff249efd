import { createHash } from 'node:crypto'
import type { Database } from '../../platform/postgres/postgres.ts'
import { DoesNotOpen, type SealingKeys, seal, unseal } from '../../platform/seal.ts'
import { callbackContext } from '../encryption-contexts.ts'
import {
  type CallbackKind,
  deleteKeptCallbacks,
  endTurn,
  type KeptKey,
  keepCallback,
  keptCallbacks,
  takeTurn,
} from './sql/kept-callbacks.ts'

/** At 8 kB each (the longest query string that payoutd reads), 0.8 GB at most. */
const BOUNDS = { mostOfOrder: 8, mostOfMerchant: 20_000, most: 100_000 }
const PAGE = 200
const EVERY_MS = 600_000
/** Longer than a page takes. If a process dies during its turn, the others wait this long. */
const TURN_MS = 60_000
const TAKEN_MS = 5_000

export type KeptCallbacksDeps = {
  db: Database
  sealing: SealingKeys
  kind: CallbackKind
}

/** A callback that this process cannot verify, with the order that it names. */
export type UnverifiedCallback = { merchantId: string; orderNo: string; rawQuery: string }

/**
 * Keeps callbacks of merchants that are not in the settings, sealed, as they came: a merchant that left the settings may
 * have open orders, and a gateway does not retry for ever. A callback has no effect until it is verified like any other.
 */
export class KeptCallbacks {
  readonly #deps: KeptCallbacksDeps
  #after = START

  constructor(deps: KeptCallbacksDeps) {
    this.#deps = deps
  }

  /**
   * `unknown-order`: the ledger has no such order. `no-room`: the ledger notes that a callback of this order was lost.
   * Throws when it cannot store the callback.
   */
  async keep({
    merchantId,
    orderNo,
    rawQuery,
  }: UnverifiedCallback): Promise<'kept' | 'unknown-order' | 'no-room'> {
    const { db, sealing, kind } = this.#deps
    const queryHash = createHash('sha256').update(rawQuery).digest()
    const key = { merchantId, kind, orderNo, queryHash }
    const sealed = seal(Buffer.from(rawQuery), callbackContext(key), sealing)
    const [row] = await db.write('keep callback', keepCallback, { ...key, sealed, ...BOUNDS })
    if (!row?.isKnown) return 'unknown-order'
    return row.isKept ? 'kept' : 'no-room'
  }

  /**
   * Hands some kept callbacks of these merchants, who are in the settings, to `take` in the order in which they came. `take`
   * resolves to whether it verified and stored the callback; if so, the kept one is deleted. Does nothing while another
   * process has the turn. Returns how many ms to wait before the next turn.
   */
  async takeUp(merchantIds: string[], take: Take): Promise<number> {
    const { db, kind } = this.#deps
    const [turn] = await db.run(takeTurn, { kind, forMs: TURN_MS })
    if (!turn) return TAKEN_MS
    try {
      return await this.#takePage(merchantIds, take)
    } finally {
      await db.run(endTurn, { kind, ...turn })
    }
  }

  async #takePage(merchantIds: string[], take: Take): Promise<number> {
    const { db, sealing, kind } = this.#deps
    const page = await db.run(keptCallbacks, { kind, merchantIds, limit: PAGE, ...this.#after })
    const taken = await Promise.all(
      page.map(async (kept) => {
        const rawQuery = opened(kept, sealing)
        return rawQuery !== null && (await take(kept.merchantId, rawQuery)) ? [kept] : []
      }),
    )
    const gone = taken.flat()
    if (gone.length > 0) await db.write('forget kept callbacks', deleteKeptCallbacks, { kind, taken: gone })
    const last = page.length === PAGE ? page.at(-1) : undefined
    this.#after = last ?? START
    return last ? 0 : EVERY_MS
  }
}

/** The callback after which the next page begins. */
type Place = Omit<KeptKey, 'kind'> & { arrived: string }

type Take = (merchantId: string, rawQuery: string) => Promise<boolean>

const START: Place = { arrived: '-infinity', merchantId: '', orderNo: '', queryHash: Buffer.alloc(0) }

/** Null if this process has no key that opens it. The callback stays until payoutd starts with that key. */
function opened({ sealed, ...key }: KeptKey & { sealed: Buffer }, sealing: SealingKeys): string | null {
  try {
    return unseal(sealed, callbackContext(key), sealing).toString()
  } catch (error) {
    if (error instanceof DoesNotOpen) return null
    throw error
  }
}
