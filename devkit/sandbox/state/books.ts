import type { StatementSync } from 'node:sqlite'
import type { Store } from './store.ts'

/** A merchant's accounts. Their money came from two accounts that all merchants share: funding and payers. */
export const ACCOUNTS = ['available', 'frozen', 'pending', 'unsettled', 'paidOut', 'fees'] as const
export type AccountName = (typeof ACCOUNTS)[number]

type BookAccount = { id: number; balance: bigint; changed: boolean }
type Entry = readonly [BookAccount, bigint]

/** The balances of a merchant's accounts, in paise. */
export type Balances = Record<AccountName, bigint>

/** Money of one payout or payin, in paise. */
export type Sum = { amount: bigint; fee: bigint }

/**
 * Double-entry books: every movement is two or more entries that add up to zero, so the sum over all accounts is
 * always zero. The balances are in memory; each group of the store writes them.
 */
export class Books {
  readonly #store: Store
  readonly #merchants = new Map<number, Record<AccountName, BookAccount>>()
  readonly #funding: BookAccount
  readonly #payers: BookAccount
  readonly #insertMovement: StatementSync
  readonly #insertTwo: StatementSync
  readonly #insertThree: StatementSync
  #nextMovement: number

  constructor(store: Store) {
    this.#store = store
    this.#insertMovement = store.prepare(
      'insert into movements (id, kind, merchant_id, order_id) values (?, ?, ?, ?)',
    )
    this.#insertTwo = store.prepare('insert into entries values (?, ?, ?), (?, ?, ?)')
    this.#insertThree = store.prepare('insert into entries values (?, ?, ?), (?, ?, ?), (?, ?, ?)')
    const last = store.prepare('select coalesce(max(id), 0) as id from movements').get()
    this.#nextMovement = Number(last?.id) + 1
    this.#funding = this.#account(null, 'funding')
    this.#payers = this.#account(null, 'payers')
    this.#writeBalancesWithEachGroup()
  }

  /** Opens a merchant's books, or continues them from the file. */
  open(merchantId: number): void {
    const open = ACCOUNTS.map((name) => [name, this.#account(merchantId, name)])
    this.#merchants.set(merchantId, Object.fromEntries(open))
  }

  /** A merchant's first money, from the funding account. */
  fund(merchantId: number, amount: bigint): void {
    this.#move('fund', merchantId, null, [
      [this.#funding, -amount],
      [this.#of(merchantId).available, amount],
    ])
  }

  balances(merchantId: number): Balances {
    const accounts = Object.entries(this.#of(merchantId)).map(([name, { balance }]) => [name, balance])
    return Object.fromEntries(accounts)
  }

  /** Whether the available balance covers amount and fee. */
  covers(merchantId: number, { amount, fee }: Sum): boolean {
    return this.#of(merchantId).available.balance >= amount + fee
  }

  /** An order is accepted: amount and fee are frozen. */
  freeze(merchantId: number, orderId: number, { amount, fee }: Sum): void {
    const { available, frozen } = this.#of(merchantId)
    this.#move('freeze', merchantId, orderId, [
      [available, -(amount + fee)],
      [frozen, amount + fee],
    ])
  }

  /** The beneficiary has the money, the gateway its fee. */
  pay(merchantId: number, orderId: number, { amount, fee }: Sum): void {
    const accounts = this.#of(merchantId)
    this.#move('pay', merchantId, orderId, [
      [accounts.frozen, -(amount + fee)],
      [accounts.paidOut, amount],
      [accounts.fees, fee],
    ])
  }

  /** A payout failed: amount and fee come back. */
  release(merchantId: number, orderId: number, { amount, fee }: Sum): void {
    const { available, frozen } = this.#of(merchantId)
    this.#move('release', merchantId, orderId, [
      [frozen, -(amount + fee)],
      [available, amount + fee],
    ])
  }

  /** A payer has paid an order: the amount less the fee is the merchant's, but not settled yet. */
  collect(merchantId: number, payinId: number, { amount, fee }: Sum): void {
    const { unsettled, fees } = this.#of(merchantId)
    this.#move('collect', merchantId, payinId, [
      [this.#payers, -amount],
      [unsettled, amount - fee],
      [fees, fee],
    ])
  }

  /** A payer's money has arrived, and its order is unknown. */
  arrive(merchantId: number, payinId: number, amount: bigint): void {
    this.#move('arrive', merchantId, payinId, [
      [this.#payers, -amount],
      [this.#of(merchantId).pending, amount],
    ])
  }

  /** Money that arrived earlier finds its order. */
  match(merchantId: number, payinId: number, { amount, fee }: Sum): void {
    const { pending, unsettled, fees } = this.#of(merchantId)
    this.#move('match', merchantId, payinId, [
      [pending, -amount],
      [unsettled, amount - fee],
      [fees, fee],
    ])
  }

  /** The money of a payin becomes available. */
  settle(merchantId: number, payinId: number, { amount, fee }: Sum): void {
    const { unsettled, available } = this.#of(merchantId)
    this.#move('settle', merchantId, payinId, [
      [unsettled, -(amount - fee)],
      [available, amount - fee],
    ])
  }

  #move(kind: string, merchantId: number, orderId: number | null, entries: readonly Entry[]): void {
    let sum = 0n
    for (const [, amount] of entries) sum += amount
    if (sum !== 0n) throw new Error(`the entries of a ${kind} add up to ${sum}, not zero`)
    const id = this.#nextMovement++
    this.#insertMovement.run(id, kind, merchantId, orderId)
    const values: (number | bigint)[] = []
    for (const [account, amount] of entries) {
      account.balance += amount
      account.changed = true
      values.push(id, account.id, amount)
    }
    const insert = entries.length === 2 ? this.#insertTwo : this.#insertThree
    insert.run(...values)
  }

  #account(merchantId: number | null, name: string): BookAccount {
    const found = this.#store
      .prepare('select id, balance from accounts where merchant_id is ? and name = ?')
      .get(merchantId, name)
    if (found) return { id: Number(found.id), balance: found.balance as bigint, changed: false }
    const { lastInsertRowid } = this.#store.write(() =>
      this.#store
        .prepare('insert into accounts (merchant_id, name, balance) values (?, ?, 0)')
        .run(merchantId, name),
    )
    return { id: Number(lastInsertRowid), balance: 0n, changed: false }
  }

  #writeBalancesWithEachGroup(): void {
    const update = this.#store.prepare('update accounts set balance = ? where id = ?')
    this.#store.beforeCommit(() => {
      for (const account of this.#allAccounts()) {
        if (!account.changed) continue
        update.run(account.balance, account.id)
        account.changed = false
      }
    })
  }

  *#allAccounts(): Iterable<BookAccount> {
    yield this.#funding
    yield this.#payers
    for (const accounts of this.#merchants.values()) yield* Object.values(accounts)
  }

  #of(merchantId: number): Record<AccountName, BookAccount> {
    const accounts = this.#merchants.get(merchantId)
    if (!accounts) throw new Error(`no books are open for merchant ${merchantId}`)
    return accounts
  }
}
