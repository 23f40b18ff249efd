import type { Books } from './books.ts'
import type { Store } from './store.ts'

/** `mchId` is what the merchant calls itself in every request; `id` is ours. */
export type Merchant = { id: number; mchId: string; key: string }

/** The merchants of the state file and those given at the start. */
export class Merchants {
  readonly #byMchId = new Map<string, Merchant>()
  readonly #byId = new Map<number, Merchant>()

  /**
   * A merchant that the file does not know is added with `openingBalance` paise; one that it knows keeps
   * its balance, and a key given again replaces its key.
   */
  constructor(
    store: Store,
    books: Books,
    given: readonly { mchId: string; key: string }[],
    openingBalance: bigint,
  ) {
    for (const row of store.prepare('select id, mch_id, key from merchants').all()) {
      this.#add({ id: Number(row.id), mchId: String(row.mch_id), key: String(row.key) })
    }
    for (const { id } of this.#byId.values()) books.open(id)
    const insert = store.prepare('insert into merchants (mch_id, key) values (?, ?)')
    const update = store.prepare('update merchants set key = ? where id = ?')
    for (const { mchId, key } of given) {
      store.write(() => {
        const known = this.#byMchId.get(mchId)
        if (known) {
          known.key = key
          update.run(key, known.id)
          return
        }
        const id = Number(insert.run(mchId, key).lastInsertRowid)
        this.#add({ id, mchId, key })
        books.open(id)
        if (openingBalance > 0n) books.fund(id, openingBalance)
      })
    }
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

  names(): string[] {
    return [...this.#byMchId.keys()]
  }

  #add(merchant: Merchant): void {
    this.#byMchId.set(merchant.mchId, merchant)
    this.#byId.set(merchant.id, merchant)
  }
}
