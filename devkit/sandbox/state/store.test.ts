import assert from 'node:assert/strict'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { newStateFile } from '../testing.ts'
import { STANDARD } from '../wire/dialect.ts'
import { Books } from './books.ts'
import { Merchants } from './merchants.ts'
import { Store } from './store.ts'

const HOUR = 3_600_000
const addMerchant = (store: Store, mchId: string) =>
  store.write(() => store.prepare("insert into merchants values (null, ?, 'k', '[]', null)").run(mchId))
const merchants = (store: Store) => store.prepare('select mch_id from merchants').all().length

test('writes share one commit, and its waiters learn of it afterwards', async () => {
  const file = newStateFile()
  const store = new Store(file, HOUR)
  addMerchant(store, 'M1')
  addMerchant(store, 'M2')
  let told = false
  const waiting = store.committed().then(() => {
    told = true
  })
  await Promise.resolve()
  assert.equal(told, false)
  store.flush()
  await waiting
  store.close()
  const again = new Store(file, HOUR)
  assert.equal(merchants(again), 2)
  again.close()
})

test('after a failed write nothing of its group is kept, and every waiter sees the failure', async () => {
  const file = newStateFile()
  const store = new Store(file, HOUR)
  addMerchant(store, 'M1')
  const waiting = assert.rejects(store.committed(), /UNIQUE/)
  assert.throws(() => addMerchant(store, 'M1'), /UNIQUE/)
  await waiting
  await assert.rejects(store.committed(), /state file could not be written/)
  assert.throws(() => addMerchant(store, 'M3'), /state file could not be written/)
  store.close()
  const again = new Store(file, HOUR)
  assert.equal(merchants(again), 0)
  again.close()
})

test('a state file in use, a file that is none and a foreign database are refused by name, each with its own message', () => {
  const file = newStateFile()
  const store = new Store(file, HOUR)
  assert.throws(
    () => new Store(file, HOUR),
    new RegExp(`${file} is in use by another sandbox, or another program$`),
  )
  store.close()
  const text = newStateFile()
  writeFileSync(text, 'amount,account\n'.repeat(100))
  assert.throws(() => new Store(text, HOUR), new RegExp(`${text} is no SQLite file$`))
  const other = newStateFile()
  const theirs = new DatabaseSync(other)
  theirs.exec('create table merchants (name text)')
  theirs.close()
  const before = readFileSync(other)
  assert.throws(() => new Store(other, HOUR), new RegExp(`${other} is an SQLite file, but no sandbox's$`))
  assert.deepEqual(readFileSync(other), before)
})

test('a state file of another version is refused by name and left as it is', () => {
  const file = newStateFile()
  const older = new DatabaseSync(file)
  older.exec(
    'create table merchants (id integer primary key); create table movements (id integer primary key)',
  )
  older.exec('pragma user_version=1')
  older.close()
  const before = readFileSync(file)
  assert.throws(() => new Store(file, HOUR), new RegExp(`${file} is of another version of the sandbox: 1, `))
  assert.deepEqual(readFileSync(file), before)
})

test('only its owner can read a state file, because it contains the keys', () => {
  const file = newStateFile()
  new Store(file, HOUR).close()
  assert.equal(statSync(file).mode & 0o777, 0o600)
})

test('books survive a restart and agree with their entries', () => {
  const file = newStateFile()
  const first = new Store(file, HOUR)
  const books = new Books(first)
  new Merchants({ store: first, books, openingBalance: 100_000n, dialect: STANDARD }).put({
    mchId: 'M1',
    key: 'k',
  })
  const order = { amount: 10_000n, fee: 500n }
  const orders = first.prepare(
    `insert into orders select ?, 1, 'O' || ?, 1, 1, '', '', '', '', 2, 0, 0, 1, 1, 0, 0, 0, null, 0, 0`,
  )
  first.write(() => {
    for (const id of [1, 2, 3]) {
      orders.run(id, id)
      books.freeze(1, id, order)
    }
    books.pay(1, 1, order)
    books.release(1, 2, order)
  })
  first.close()

  const second = new Store(file, HOUR)
  const reopened = new Books(second)
  // The opening balance is for new merchants only.
  new Merchants({ store: second, books: reopened, openingBalance: 777n, dialect: STANDARD }).put({
    mchId: 'M1',
    key: 'k',
  })
  assert.deepEqual(reopened.balances(1), {
    available: 79_000n,
    frozen: 10_500n,
    pending: 0n,
    unsettled: 0n,
    paidOut: 10_000n,
    fees: 500n,
  })
  assert.ok(reopened.covers(1, { amount: 78_500n, fee: 500n }))
  assert.ok(!reopened.covers(1, { amount: 78_501n, fee: 500n }))
  second.close()
})
