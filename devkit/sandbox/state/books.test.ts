import assert from 'node:assert/strict'
import { test } from 'node:test'
import pLimit from 'p-limit'
import { startSandbox } from '../sandbox.ts'
import { KEY, MCH_ID, merchantOf, newStateFile, receiveCallbacks, until } from '../testing.ts'

/** The same sequence on every run (a linear congruential generator). */
function random(seed: number) {
  let state = seed
  return (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.floor((state / 2 ** 31) * below)
  }
}

test('after a random load the books add up to zero, and match the orders', async (t) => {
  const opening = 12_000_000n
  const { notifyUrl } = await receiveCallbacks(t)
  const sandbox = await startSandbox({
    state: newStateFile(),
    merchants: [{ mchId: MCH_ID, key: KEY }],
    settleMs: 5,
    balance: opening,
    feeBps: 17n,
  })
  t.after(() => sandbox.stop())
  const merchant = merchantOf(sandbox.url)
  const pick = random(7)
  const accounts = ['50100123456789', '9999000001', '9999000003', '9999000008', '9999000012', '999900001101']
  const said = new Map<string, number>()
  const limit = pLimit(24)
  await Promise.all(
    Array.from({ length: 500 }, () => {
      const order = {
        mchOrderNo: `L${pick(300)}`,
        amount: String((pick(2_000) + 1) * 100),
        accountNo: accounts[pick(accounts.length)] ?? '',
        notifyUrl,
      }
      return limit(async () => {
        const { fields } = await merchant.apply(order)
        const code = String(fields.retCode ?? 'HTTP 500')
        said.set(code, (said.get(code) ?? 0) + 1)
        const { accounts, everything } = await merchant.books()
        assert.equal(everything.sum, '0')
        const sum = Object.values(accounts).reduce((all, each) => all + BigInt(each), 0n)
        assert.equal(sum, opening)
        assert.ok(Object.values(accounts).every((each) => BigInt(each) >= 0n))
      })
    }),
  )
  // Otherwise the load tried less than it claims.
  for (const code of ['SUCCESS', 'DUPLICATE_ORDER', 'BALANCE_SHORT', 'TOO_FAST', 'HTTP 500'])
    assert.ok(said.has(code), code)

  await until('all is quiet', async () => {
    const { orders } = await merchant.books()
    return orders.processing === 0 && orders.callbacksOutstanding === 0
  })
  const orders = await merchant.orders()
  const paid = orders.filter(({ timesPaid }) => timesPaid > 0)
  const sum = (amounts: string[]) => String(amounts.reduce((all, each) => all + BigInt(each), 0n))
  const books = await merchant.books()
  assert.ok(books.balancesAgree)
  assert.equal(books.accounts.paidOut, sum(paid.map(({ amount }) => amount)))
  assert.equal(books.accounts.fees, sum(paid.map(({ fee }) => fee)))
  assert.equal(books.accounts.frozen, '0')
  assert.equal(books.orders.paidMoreThanOnce, 0)
  assert.equal(books.movements.pay, paid.length)
  assert.equal(books.movements.release, orders.length - paid.length)
  const balance = await merchant.balance()
  assert.equal(String(balance.availableAmount), books.accounts.available)
})

test('after random payins and recoveries the books add up to zero, and match the payins', async (t) => {
  const { notifyUrl } = await receiveCallbacks(t)
  const sandbox = await startSandbox({
    state: newStateFile(),
    merchants: [{ mchId: MCH_ID, key: KEY }],
    balance: 0n,
    payinSettleMs: 0,
    payinFeeBps: 17n,
  })
  t.after(() => sandbox.stop())
  const merchant = merchantOf(sandbox.url)
  const pick = random(11)
  const done = new Map<string, number>()
  const limit = pLimit(16)
  await Promise.all(
    Array.from({ length: 200 }, (_, i) => {
      const amount = String((pick(20) + 1) * 100)
      const button = ['pay', 'fail', 'expire', 'pay-untold', 'recover'][pick(5)] ?? ''
      return limit(async () => {
        const created = await merchant.create({ mchOrderNo: `P${i}`, amount, notifyUrl })
        const payOrderId = String(created.fields.payOrderId)
        const pressed = await merchant.press(payOrderId, button === 'recover' ? 'pay-untold' : button)
        if (button === 'recover') {
          const recovered = await merchant.recover(payOrderId, pressed.untoldUtrs[0] ?? '')
          assert.equal(recovered.fields.retCode, 'SUCCESS')
        }
        done.set(button, (done.get(button) ?? 0) + 1)
        const { everything, balancesAgree } = await merchant.books()
        assert.equal(everything.sum, '0')
        assert.ok(balancesAgree)
      })
    }),
  )
  await until('all is settled', async () => (await merchant.balance()).unsettledAmount === 0)
  const payins = await merchant.payins()
  const paid = payins.filter(({ status }) => status === 2)
  const untold = payins.filter(({ untoldUtrs }) => untoldUtrs.length > 0)
  assert.equal(paid.length, (done.get('pay') ?? 0) + (done.get('recover') ?? 0))
  assert.equal(untold.length, done.get('pay-untold'))
  const sum = (amounts: string[]) => amounts.reduce((all, each) => all + BigInt(each), 0n)
  const { accounts, movements } = await merchant.books()
  const fees = sum(paid.map(({ fee }) => fee))
  assert.equal(accounts.fees, String(fees))
  assert.equal(accounts.available, String(sum(paid.map(({ amount }) => amount)) - fees))
  assert.equal(accounts.pending, String(sum(untold.map(({ amount }) => amount))))
  assert.deepEqual(movements, {
    arrive: untold.length + (done.get('recover') ?? 0),
    collect: done.get('pay'),
    match: done.get('recover'),
    settle: paid.length,
  })
})
