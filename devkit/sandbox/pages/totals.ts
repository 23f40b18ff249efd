import type { StatementSync } from 'node:sqlite'
import { ACCOUNTS } from '../state/books.ts'
import type { Store } from '../state/store.ts'

type TotalsRow = Record<string, unknown>

/** A merchant's books, summed from the entries themselves, not from the stored balances. */
export class SandboxTotals {
  readonly #accounts: StatementSync
  readonly #movements: StatementSync
  readonly #orders: StatementSync
  readonly #paidMoreThanOnce: StatementSync
  readonly #payins: StatementSync

  constructor(store: Store) {
    this.#accounts = store.prepare(
      `select merchant_id, name, balance, coalesce(sum, 0) as sum, coalesce(entries, 0) as entries
       from accounts left join
         (select account_id, sum(amount) as sum, count(*) as entries from entries group by account_id)
         on account_id = id`,
    )
    this.#movements = store.prepare(
      'select kind, count(*) as n from movements where merchant_id = ? group by kind order by kind',
    )
    this.#orders = store.prepare(
      `select count(*) as total, coalesce(sum(status = 1), 0) as processing,
         coalesce(sum(status = 2), 0) as success, coalesce(sum(status = 3), 0) as failed,
         coalesce(sum(times_paid), 0) as timesPaid,
         coalesce(sum(callback_at is not null), 0) as callbacksOutstanding
       from orders where merchant_id = ?`,
    )
    this.#paidMoreThanOnce = store.prepare(
      `select count(*) as n from (select 1 from orders where merchant_id = ?
         group by mch_order_no having sum(times_paid) > 1)`,
    )
    this.#payins = store.prepare(
      `select count(*) as total, coalesce(sum(status = 0), 0) as waiting,
         coalesce(sum(status = 2), 0) as paid, coalesce(sum(status = 3), 0) as failed,
         coalesce(sum(callback_at is not null), 0) as callbacksOutstanding
       from payins where merchant_id = ?`,
    )
  }

  /** Amounts as strings of paise, counts as numbers. Reads everything: about 5 µs per payout. */
  of(merchantId: number) {
    const everything = this.#accounts.all()
    const own = everything.filter(({ merchant_id }) => Number(merchant_id) === merchantId)
    const movements = this.#movements.all(merchantId).map(({ kind, n }) => [kind, Number(n)])
    return {
      accounts: Object.fromEntries(ACCOUNTS.map((name) => [name, String(sum(named(own, name)))])),
      /** Whether the stored balances agree with the entries. */
      balancesAgree: everything.every(({ balance, sum }) => balance === sum),
      movements: Object.fromEntries(movements),
      orders: {
        ...numbers(this.#orders.get(merchantId)),
        /** Order numbers, not orders: if a second apply is accepted, it is another order. */
        paidMoreThanOnce: Number(this.#paidMoreThanOnce.get(merchantId)?.n),
      },
      payins: numbers(this.#payins.get(merchantId)),
      everything: {
        entries: everything.reduce((all, { entries }) => all + Number(entries), 0),
        sum: String(sum(everything)),
      },
    }
  }
}

const numbers = (row: TotalsRow = {}) =>
  Object.fromEntries(Object.entries(row).map(([name, n]) => [name, Number(n)]))

const named = (rows: readonly TotalsRow[], account: string) => rows.filter(({ name }) => name === account)

const sum = (rows: readonly TotalsRow[]): bigint => rows.reduce((all, row) => all + (row.sum as bigint), 0n)
