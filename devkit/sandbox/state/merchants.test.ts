import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { type SandboxOptions, startSandbox } from '../sandbox.ts'
import { KEY, MCH_ID, merchantOf, newStateFile, payout, receiveCallbacks, sign, until } from '../testing.ts'
import { STANDARD } from '../wire/dialect.ts'
import { readSeed } from './merchant-file.ts'

const PAYS_TWICE = { duplicateApply: 'unknown' }

async function start(t: TestContext, options: Partial<SandboxOptions> = {}) {
  const sandbox = await startSandbox({ state: newStateFile(), merchants: [], settleMs: 0, ...options })
  t.after(() => sandbox.stop())
  const put = async (body: unknown) => {
    const response = await fetch(`${sandbox.url}/_sandbox/merchants`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
    return { status: response.status, said: (await response.json()) as Record<string, string> }
  }
  return { sandbox, put, merchant: merchantOf(sandbox.url) }
}

test('a merchant created while the sandbox runs keeps its balance when put again, and survives a restart', async (t) => {
  const state = newStateFile()
  const { sandbox, put, merchant } = await start(t, { state })
  assert.equal((await merchant.apply()).fields.retCode, 'MERCHANT_NOT_FOUND')
  const created = await put({ mchId: MCH_ID, key: KEY, balance: '70000' })
  assert.deepEqual(created, { status: 201, said: { mchId: MCH_ID } })
  assert.equal((await merchant.apply()).fields.retCode, 'SUCCESS')
  await until('it is paid', async () => (await merchant.query('ORDER1')).fields.status === 2)
  assert.equal((await put({ mchId: MCH_ID, key: KEY, balance: '990000' })).status, 200)
  assert.equal((await merchant.balance()).amount, 59_500)
  await put({ mchId: 'M2000', key: 'another key' })
  await put({ mchId: MCH_ID, key: 'newest', olderKeys: ['older', KEY], dialect: PAYS_TWICE })
  await sandbox.stop()
  const again = await start(t, { state })
  assert.deepEqual(again.sandbox.merchants, [MCH_ID, 'M2000'])
  assert.equal((await again.merchant.balance()).amount, 59_500)
  for (const key of ['newest', 'older', KEY]) {
    assert.equal((await merchantOf(again.sandbox.url, key).apply()).fields.retCode, 'SUCCESS', key)
  }
})

test('an invalid merchant is refused with every fault, and the errors repeat no key', async (t) => {
  const { put, sandbox } = await start(t)
  const { status, said } = await put({ mchId: '', key: 12345678, balance: '-1', secrets: 'a key' })
  assert.equal(status, 400)
  for (const field of ['mchId', 'key', 'balance', 'secrets']) assert.ok(said.error?.includes(field), field)
  assert.doesNotMatch(said.error ?? '', /12345678|a key/)
  for (const body of ['{"mchId"', '', 'null', '{"mchId":"M1","key":"k","__proto__":{"dialect":{}}}']) {
    assert.equal((await put(body)).status, 400, body)
  }
  assert.equal((await fetch(`${sandbox.url}/_sandbox/books?mchId=M1`)).status, 404)
})

test('every key of a merchant is good; an answer is signed with its request’s key, callbacks with the newest', async (t) => {
  const { notifyUrl, received } = await receiveCallbacks(t)
  const { sandbox, put } = await start(t)
  await put({ mchId: MCH_ID, key: 'newest', olderKeys: ['older', 'oldest'] })
  for (const key of ['newest', 'older', 'oldest']) {
    const { fields, signedWell } = await merchantOf(sandbox.url, key).apply({ mchOrderNo: key, notifyUrl })
    assert.equal(fields.retCode, 'SUCCESS')
    assert.ok(signedWell, key)
  }
  const { fields } = await merchantOf(sandbox.url, 'unknown').apply({ mchOrderNo: 'unknown' })
  assert.equal(fields.retCode, 'SIGN_ERROR')
  assert.equal(fields.sign, sign(fields as Record<string, string>, 'newest'))
  await until('all are called back about', () => received.length === 3)
  for (const { params } of received) assert.equal(params.sign, sign(params, 'newest'))

  await put({ mchId: MCH_ID, key: 'newest' })
  assert.equal((await merchantOf(sandbox.url, 'older').apply()).fields.retCode, 'SIGN_ERROR')
  assert.equal((await merchantOf(sandbox.url, 'newest').apply()).fields.retCode, 'SUCCESS')
})

test('in a dialect with unknown duplicates, a second apply is accepted and paid, and the books show it', async (t) => {
  const { notifyUrl, about } = await receiveCallbacks(t)
  const { put, merchant, sandbox } = await start(t)
  await put({ mchId: MCH_ID, key: KEY, balance: '100000', dialect: PAYS_TWICE })
  const first = await merchant.apply({ notifyUrl })
  const second = await merchant.apply({ notifyUrl })
  assert.deepEqual([first.fields.retCode, second.fields.retCode], ['SUCCESS', 'SUCCESS'])
  assert.notEqual(first.fields.agentpayOrderId, second.fields.agentpayOrderId)
  await until('both are called back about', () => about('ORDER1').length === 2)
  const { orders, accounts, movements, everything } = await merchant.books()
  assert.deepEqual([orders.total, orders.timesPaid, orders.paidMoreThanOnce], [2, 2, 1])
  assert.deepEqual(movements, { freeze: 2, fund: 1, pay: 2 })
  assert.equal(accounts.paidOut, '20000')
  assert.equal(accounts.available, '79000')
  assert.equal(everything.sum, '0')
  assert.equal((await merchant.query('ORDER1')).fields.agentpayOrderId, second.fields.agentpayOrderId)
  for (const { agentpayOrderId } of [first.fields, second.fields]) {
    const asked = { mchId: MCH_ID, reqTime: '20261121120000', agentpayOrderId: String(agentpayOrderId) }
    assert.equal((await merchant.post('/api/pay/query_order', asked)).fields.status, 2)
  }

  await put({ mchId: 'M2000', key: 'another key' })
  const other = merchantOf(sandbox.url, 'another key')
  const apply = () => other.post('/api/agentpay/apply', payout({ mchId: 'M2000' }))
  assert.deepEqual(
    [(await apply()).fields.retCode, (await apply()).fields.retCode],
    ['SUCCESS', 'DUPLICATE_ORDER'],
  )
})

test('a seed file names merchants; a wrong one is refused with every fault, and the errors repeat no key', () => {
  const file = newStateFile()
  const read = (text: string) => {
    writeFileSync(file, text)
    return readSeed(file)
  }
  const merchants = [
    { mchId: 'M1', key: 'k1' },
    { mchId: 'M2', key: 'k2', olderKeys: ['k0'], balance: '100', dialect: { ...STANDARD, ...PAYS_TWICE } },
  ]
  assert.deepEqual(read(JSON.stringify({ merchants })), [merchants[0], { ...merchants[1], balance: 100n }])
  const wrong: [text: string, ...named: string[]][] = [
    ['{"merchants": [{"mchId": "M1", "key": "secret-1"', 'it is not JSON'],
    ['[]', 'the whole'],
    [
      '{"merchants": [{"mchId": "M1"}, {"mchId": "M2", "key": ["secret-1"], "balance": 100}]}',
      'merchants.0.key',
      'merchants.1.key',
      'merchants.1.balance',
    ],
  ]
  for (const [text, ...named] of wrong) {
    assert.throws(
      () => read(text),
      ({ message }: Error) =>
        message.includes(file) &&
        named.every((each) => message.includes(each)) &&
        !message.includes('secret-1'),
      text,
    )
  }
  assert.throws(() => readSeed(`${file}.none`), /cannot be read/)
})
