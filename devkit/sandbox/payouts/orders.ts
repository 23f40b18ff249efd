import type { StatementSync } from 'node:sqlite'
import type { Store } from '../state/store.ts'
import type { CallbackVariant } from '../test-accounts.ts'
import type { Order, Status } from './order.ts'

type OrderRow = Record<string, unknown>

/** The orders of the state file. Every write belongs inside `store.write`. */
export class Orders {
  readonly #insert: StatementSync
  readonly #settled: StatementSync
  readonly #delivered: StatementSync
  readonly #countApply: StatementSync
  readonly #byNumber: StatementSync
  readonly #byId: StatementSync
  readonly #open: StatementSync
  readonly #page: StatementSync
  readonly #latest: StatementSync
  readonly #tries: StatementSync
  readonly #countTry: StatementSync

  constructor(store: Store) {
    this.#insert = store.prepare('insert into orders values (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)')
    this.#settled = store.prepare(
      'update orders set status = ?, times_paid = ?, callback_at = ? where id = ?',
    )
    this.#delivered = store.prepare(
      `update orders set letter = ?, letter_tries = ?, callback_at = ?, callbacks_sent = ?,
         callbacks_acknowledged = ? where id = ?`,
    )
    this.#countApply = store.prepare('update orders set apply_calls = apply_calls + 1 where id = ?')
    this.#byNumber = store.prepare(
      'select * from orders where merchant_id = ? and mch_order_no = ? order by id desc limit 1',
    )
    this.#byId = store.prepare('select * from orders where id = ?')
    this.#open = store.prepare('select * from orders where status = 1 or callback_at is not null')
    this.#page = store.prepare('select * from orders where merchant_id = ? and id > ? order by id limit ?')
    this.#latest = store.prepare('select * from orders order by id desc limit ?')
    this.#tries = store.prepare('select tries from tries where merchant_id = ? and mch_order_no = ?')
    this.#countTry = store.prepare(
      'insert into tries values (?, ?, 1) on conflict do update set tries = tries + 1',
    )
  }

  add(order: Order): void {
    this.#insert.run(
      order.id,
      order.merchantId,
      order.mchOrderNo,
      order.amount,
      order.fee,
      order.accountMasked,
      order.payee,
      order.notifyUrl,
      order.callbacks.join(' '),
      order.becomes,
      order.acceptedAt,
      order.settleAt,
      order.applyCalls,
      order.status,
      order.timesPaid,
      order.callbackIndex,
      order.callbackTries,
      order.callbackAt,
      order.callbacksSent,
      order.callbacksAcknowledged,
    )
  }

  saveSettled(order: Order): void {
    this.#settled.run(order.status, order.timesPaid, order.callbackAt, order.id)
  }

  saveDelivered(order: Order): void {
    this.#delivered.run(
      order.callbackIndex,
      order.callbackTries,
      order.callbackAt,
      order.callbacksSent,
      order.callbacksAcknowledged,
      order.id,
    )
  }

  /** Counts one more apply for an existing order. */
  countApply(order: Order): void {
    this.#countApply.run(order.id)
  }

  /** How many applies of this number were refused because of a fault of its account. */
  tries(merchantId: number, mchOrderNo: string): number {
    return Number(this.#tries.get(merchantId, mchOrderNo)?.tries ?? 0)
  }

  countTry(merchantId: number, mchOrderNo: string): void {
    this.#countTry.run(merchantId, mchOrderNo)
  }

  /** The latest order of this number: there are several if a second apply is accepted. */
  byNumber(merchantId: number, mchOrderNo: string): Order | undefined {
    return orderOf(this.#byNumber.get(merchantId, mchOrderNo))
  }

  byId(id: number): Order | undefined {
    return orderOf(this.#byId.get(id))
  }

  /** Every order that has not ended, or has a callback outstanding. */
  open(): Order[] {
    return this.#open.all().map((row) => orderOf(row) as Order)
  }

  /** Up to `limit` orders of all merchants, newest first. */
  latest(limit: number): Order[] {
    return this.#latest.all(limit).map((row) => orderOf(row) as Order)
  }

  /** Up to `limit` orders of a merchant after `afterId`, in order of acceptance. */
  page(merchantId: number, afterId: number, limit: number): Order[] {
    return this.#page.all(merchantId, afterId, limit).map((row) => orderOf(row) as Order)
  }
}

function orderOf(row: OrderRow | undefined): Order | undefined {
  if (!row) return undefined
  const letters = String(row.letters)
  return {
    id: Number(row.id),
    merchantId: Number(row.merchant_id),
    mchOrderNo: String(row.mch_order_no),
    amount: row.amount as bigint,
    fee: row.fee as bigint,
    accountMasked: String(row.account_masked),
    payee: String(row.payee),
    notifyUrl: String(row.notify_url),
    callbacks: letters === '' ? [] : (letters.split(' ') as CallbackVariant[]),
    becomes: Number(row.becomes) as Order['becomes'],
    acceptedAt: Number(row.accepted_at),
    settleAt: Number(row.settle_at),
    applyCalls: Number(row.apply_calls),
    status: Number(row.status) as Status,
    timesPaid: Number(row.times_paid),
    callbackIndex: Number(row.letter),
    callbackTries: Number(row.letter_tries),
    callbackAt: row.callback_at === null ? null : Number(row.callback_at),
    callbacksSent: Number(row.callbacks_sent),
    callbacksAcknowledged: Number(row.callbacks_acknowledged),
  }
}
