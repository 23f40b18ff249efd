import type { StatementSync } from 'node:sqlite'
import type { Instant } from '../../../src/platform/running/clock.ts'
import type { Store } from '../state/store.ts'

/** Money that a payer has sent, whether or not the gateway knows for which order. Amount in paise. */
export type Payment = {
  id: number
  merchantId: number
  utr: string
  amount: bigint
  madeAt: Instant
  /** The payin on whose checkout page it was made. */
  madeFor: number
  /** The payin that it paid; null if nobody reported the payment to the gateway. */
  claimedBy: number | null
}

/** The payments of the state file, by UTR. Every write belongs inside `store.write`. */
export class Payments {
  readonly #insert: StatementSync
  readonly #claim: StatementSync
  readonly #byUtr: StatementSync
  readonly #untold: StatementSync

  constructor(store: Store) {
    this.#insert = store.prepare('insert into payments values (?, ?, ?, ?, ?, ?, ?)')
    this.#claim = store.prepare('update payments set claimed_by = ? where id = ?')
    this.#byUtr = store.prepare('select * from payments where merchant_id = ? and utr = ?')
    this.#untold = store.prepare(
      'select utr from payments where made_for = ? and claimed_by is null order by id',
    )
  }

  add({ id, merchantId, utr, amount, madeAt, madeFor, claimedBy }: Payment): void {
    this.#insert.run(id, merchantId, utr, amount, madeAt, madeFor, claimedBy)
  }

  claim(payment: Payment, payinId: number): void {
    this.#claim.run(payinId, payment.id)
  }

  byUtr(merchantId: number, utr: string): Payment | undefined {
    const row = this.#byUtr.get(merchantId, utr)
    if (!row) return undefined
    return {
      id: Number(row.id),
      merchantId: Number(row.merchant_id),
      utr: String(row.utr),
      amount: row.amount as bigint,
      madeAt: Number(row.made_at),
      madeFor: Number(row.made_for),
      claimedBy: row.claimed_by === null ? null : Number(row.claimed_by),
    }
  }

  /** UTRs of payments made on a payin's page that no order has claimed. */
  untold(payinId: number): string[] {
    return this.#untold.all(payinId).map(({ utr }) => String(utr))
  }
}
