import type { StatementSync } from 'node:sqlite'
import { idIn } from '../state/sequence.ts'
import type { Store } from '../state/store.ts'
import type { Payin } from './payin.ts'

type PayinRow = Record<string, unknown>

/** The payins of the state file. Every write belongs inside `store.write`. */
export class PayinRecords {
  readonly #insert: StatementSync
  readonly #update: StatementSync
  readonly #byNumber: StatementSync
  readonly #byId: StatementSync
  readonly #open: StatementSync
  readonly #page: StatementSync
  readonly #latest: StatementSync

  constructor(store: Store) {
    this.#insert = store.prepare('insert into payins values (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)')
    this.#update = store.prepare(
      `update payins set status = ?, error_message = ?, utr = ?, paid_at = ?, available_at = ?,
         callback_at = ?, callback_tries = ?, callbacks_sent = ?, notify_status = ? where id = ?`,
    )
    this.#byNumber = store.prepare('select * from payins where merchant_id = ? and mch_order_no = ?')
    this.#byId = store.prepare('select * from payins where id = ?')
    this.#open = store.prepare(
      'select * from payins where status = 0 or available_at is not null or callback_at is not null',
    )
    this.#latest = store.prepare('select * from payins order by id desc limit ?')
    this.#page = store.prepare('select * from payins where merchant_id = ? and id > ? order by id limit ?')
  }

  add(payin: Payin): void {
    this.#insert.run(
      payin.id,
      payin.merchantId,
      payin.mchOrderNo,
      payin.amount,
      payin.fee,
      payin.notifyUrl,
      payin.returnUrl,
      payin.createdAt,
      payin.expiresAt,
      ...changeable(payin),
    )
  }

  save(payin: Payin): void {
    this.#update.run(...changeable(payin), payin.id)
  }

  byNumber(merchantId: number, mchOrderNo: string): Payin | undefined {
    return payinOf(this.#byNumber.get(merchantId, mchOrderNo))
  }

  byId(id: number): Payin | undefined {
    return payinOf(this.#byId.get(id))
  }

  byPlatformNo(payOrderId: string): Payin | undefined {
    const id = idIn(payOrderId, 'PI')
    return id === undefined ? undefined : this.byId(id)
  }

  /** Every payin that waits for its payer, its money or a callback. */
  open(): Payin[] {
    return this.#open.all().map((row) => payinOf(row) as Payin)
  }

  /** Up to `limit` payins of all merchants, newest first. */
  latest(limit: number): Payin[] {
    return this.#latest.all(limit).map((row) => payinOf(row) as Payin)
  }

  /** Up to `limit` payins of a merchant after `afterId`, in order of acceptance. */
  page(merchantId: number, afterId: number, limit: number): Payin[] {
    return this.#page.all(merchantId, afterId, limit).map((row) => payinOf(row) as Payin)
  }
}

const changeable = (payin: Payin) => [
  payin.status,
  payin.errorMessage,
  payin.utr,
  payin.paidAt,
  payin.availableAt,
  payin.callbackAt,
  payin.callbackTries,
  payin.callbacksSent,
  payin.notifyStatus,
]

const text = (value: unknown): string | null => (value === null ? null : String(value))
const number = (value: unknown): number | null => (value === null ? null : Number(value))

function payinOf(row: PayinRow | undefined): Payin | undefined {
  if (!row) return undefined
  return {
    id: Number(row.id),
    merchantId: Number(row.merchant_id),
    mchOrderNo: String(row.mch_order_no),
    amount: row.amount as bigint,
    fee: row.fee as bigint,
    notifyUrl: String(row.notify_url),
    returnUrl: text(row.return_url),
    createdAt: Number(row.created_at),
    expiresAt: Number(row.expires_at),
    status: Number(row.status) as Payin['status'],
    errorMessage: text(row.error_message),
    utr: text(row.utr),
    paidAt: number(row.paid_at),
    availableAt: number(row.available_at),
    callbackAt: number(row.callback_at),
    callbackTries: Number(row.callback_tries),
    callbacksSent: Number(row.callbacks_sent),
    notifyStatus: Number(row.notify_status) as Payin['notifyStatus'],
  }
}
