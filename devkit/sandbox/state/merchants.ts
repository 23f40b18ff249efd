import { type Dialect, dialectJson, type WantedDialect } from '../wire/dialect.ts'
import type { Books } from './books.ts'
import type { Store } from './store.ts'

/** `mchId` is what the merchant calls itself in every request; `id` is ours. */
export type Merchant = {
  readonly id: number
  readonly mchId: string
  /** Newest first. Requests may be signed with any of them, callbacks are signed with the newest. */
  readonly keys: readonly [string, ...string[]]
  readonly dialect: Dialect
}

/** A merchant as requested. */
export type WantedMerchant = {
  mchId: string
  key: string
  /** Keys that are still good, newest first. */
  olderKeys?: readonly string[] | undefined
  /** Opening balance in paise; the sandbox's default if absent. */
  balance?: bigint | undefined
  /** Its own dialect; the sandbox's if absent. */
  dialect?: WantedDialect | undefined
}

type MerchantParts = { store: Store; books: Books; openingBalance: bigint; dialect: Dialect }

/** The merchants of the state file. */
export class Merchants {
  readonly #parts: MerchantParts
  readonly #byMchId = new Map<string, Merchant>()
  readonly #byId = new Map<number, Merchant>()

  constructor(parts: MerchantParts) {
    this.#parts = parts
    for (const row of parts.store.prepare('select * from merchants').all()) {
      const id = Number(row.id)
      const keys = [String(row.key), ...JSON.parse(String(row.older_keys))] as const
      const dialect = row.dialect === null ? parts.dialect : JSON.parse(String(row.dialect))
      this.#keep({ id, mchId: String(row.mch_id), keys, dialect })
      parts.books.open(id)
    }
  }

  /**
   * Adds a merchant that is not in the file, with its opening balance; a known one keeps its balance and gets the
   * given keys and settings. Returns whether it is new.
   */
  put(wanted: WantedMerchant): 'new' | 'known' {
    const { mchId, key, olderKeys = [], balance } = wanted
    const { store, books, openingBalance, dialect: ours } = this.#parts
    const known = this.#byMchId.get(mchId)
    const own = wanted.dialect && dialectJson.parse(wanted.dialect)
    const row = [key, JSON.stringify(olderKeys), own ? JSON.stringify(own) : null] as const
    const settings = { keys: [key, ...olderKeys] as const, dialect: own ?? ours }
    store.write(() => {
      if (known) {
        const update = 'update merchants set key = ?, older_keys = ?, dialect = ? where id = ?'
        store.prepare(update).run(...row, known.id)
        this.#keep({ ...known, ...settings })
        return
      }
      const insert = 'insert into merchants (key, older_keys, dialect, mch_id) values (?, ?, ?, ?)'
      const id = Number(store.prepare(insert).run(...row, mchId).lastInsertRowid)
      this.#keep({ id, mchId, ...settings })
      books.open(id)
      const first = balance ?? openingBalance
      if (first > 0n) books.fund(id, first)
    })
    return known ? 'known' : 'new'
  }

  named(mchId: string): Merchant | undefined {
    return this.#byMchId.get(mchId)
  }

  /** The merchant of an order. Orders of unknown merchants do not exist. */
  of(order: { merchantId: number }): Merchant {
    const merchant = this.#byId.get(order.merchantId)
    if (!merchant) throw new Error(`an order belongs to merchant ${order.merchantId}, which does not exist`)
    return merchant
  }

  all(): Merchant[] {
    return [...this.#byMchId.values()]
  }

  #keep(merchant: Merchant): void {
    this.#byMchId.set(merchant.mchId, merchant)
    this.#byId.set(merchant.id, merchant)
  }
}
