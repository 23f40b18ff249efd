import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import pLimit from 'p-limit'
import {
  KEY,
  MCH_ID,
  merchantOf,
  newStateFile,
  receiveCallbacks,
  until,
} from '../../devkit/sandbox/testing.ts'

const MAIN = new URL('../../devkit/sandbox/main.ts', import.meta.url).pathname

async function spawnSandbox(t: TestContext, ...options: string[]) {
  const child = spawn(process.execPath, [MAIN, '--port', '0', ...options], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  const [, url = ''] = /at (http:\S+),/.exec(line) ?? []
  return { child, line, url }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<[number | null, string | null]> {
  const exited = once(child, 'exit') as Promise<[number | null, string | null]>
  child.kill(signal)
  return await exited
}

test('after SIGKILL under load, twice, every answered order is there, settles and is called back', async (t) => {
  const state = newStateFile()
  const { notifyUrl, received } = await receiveCallbacks(t)
  const options = [
    '--state',
    state,
    '--merchant',
    `${MCH_ID}:${KEY}`,
    '--settle-ms',
    '20',
    '--callback-retries',
    '0,1',
  ]
  const answered = new Map<string, string>()

  for (const round of [1, 2]) {
    const { child, url } = await spawnSandbox(t, ...options)
    const merchant = merchantOf(url)
    const limit = pLimit(32)
    const exited = once(child, 'exit')
    let killed = false
    await Promise.all(
      Array.from({ length: 600 }, (_, i) =>
        limit(async () => {
          if (killed) return
          const mchOrderNo = `R${round}N${i}`
          const accountNo = i % 5 === 0 ? '9999000001' : '50100123456789'
          // A request that the kill cuts off got no answer: whether it was accepted does not matter here.
          const answer = await merchant.apply({ mchOrderNo, accountNo, notifyUrl }).catch(() => undefined)
          if (answer?.fields.retCode !== 'SUCCESS') return
          answered.set(mchOrderNo, String(answer.fields.agentpayOrderId))
          if (answered.size >= round * 300 && !killed) {
            killed = true
            child.kill('SIGKILL')
          }
        }),
      ),
    )
    await exited
  }

  const { child, url } = await spawnSandbox(t, ...options)
  const merchant = merchantOf(url)
  await until('every order has ended and is called back about', async () => {
    const { orders } = await merchant.books()
    return orders.processing === 0 && orders.callbacksOutstanding === 0
  })
  const orders = new Map((await merchant.orders()).map((order) => [order.mchOrderNo, order]))
  assert.ok(answered.size >= 600)
  for (const [mchOrderNo, agentpayOrderId] of answered) {
    const order = orders.get(mchOrderNo)
    assert.equal(order?.agentpayOrderId, agentpayOrderId)
  }
  const told = new Map<string, Set<string>>()
  for (const { params, signedWell } of received) {
    assert.ok(signedWell)
    const story = JSON.stringify(params)
    told.set(params.mchOrderNo ?? '', (told.get(params.mchOrderNo ?? '') ?? new Set()).add(story))
  }
  for (const order of orders.values()) {
    assert.equal(order.timesPaid, order.status === 2 ? 1 : 0)
    assert.equal(order.callbacksAcknowledged, 1)
    assert.equal(told.get(order.mchOrderNo)?.size, 1, `one story about ${order.mchOrderNo}`)
  }
  const books = await merchant.books()
  assert.equal(books.everything.sum, '0')
  assert.ok(books.balancesAgree)
  assert.equal(books.accounts.frozen, '0')
  assert.equal(books.accounts.paidOut, String(Number(books.orders.success) * 10_000))
  assert.deepEqual(await end(child, 'SIGTERM'), [0, null])
})

test('the sandbox prints its address and merchants in one line, never a key, and a second start keeps its data', async (t) => {
  const options = ['--state', newStateFile(), '--merchant', `${MCH_ID}:${KEY}`, '--settle-ms', '0']
  const first = await spawnSandbox(t, ...options, '--balance', '50000')
  assert.equal(first.line, `sandbox ready at ${first.url}, merchants: ${MCH_ID}`)
  assert.match(first.url, /^http:\/\/127\.0\.0\.1:\d+$/)
  const taken = await merchantOf(first.url).apply({ accountNo: '9999000002' })
  assert.equal(taken.fields.retCode, 'SUCCESS')
  assert.deepEqual(await end(first.child, 'SIGINT'), [0, null])

  const second = await spawnSandbox(t, ...options, '--balance', '99999999')
  const merchant = merchantOf(second.url)
  await until('it is paid', async () => (await merchant.query('ORDER1')).fields.status === 2)
  assert.equal((await merchant.balance()).amount, 50_000 - 10_500)
  assert.deepEqual(await end(second.child, 'SIGTERM'), [0, null])
})

test('an apply that hangs does not keep the sandbox from stopping', async (t) => {
  const { child, url } = await spawnSandbox(t, '--state', newStateFile(), '--merchant', `${MCH_ID}:${KEY}`)
  const merchant = merchantOf(url)
  const hung = merchant.apply({ accountNo: '9999000005' }).catch((error: Error) => error.message)
  await until('it is taken', async () => (await merchant.orders()).length === 1)
  assert.deepEqual(await end(child, 'SIGTERM'), [0, null])
  assert.equal(await hung, 'fetch failed')
})

test('merchants come from a seed file, and payUrl leads to the public address', async (t) => {
  const seed = newStateFile()
  writeFileSync(seed, JSON.stringify({ merchants: [{ mchId: MCH_ID, key: KEY, balance: '12345' }] }))
  const options = ['--state', newStateFile(), '--seed', seed, '--public-url', 'http://pay.test:8790']
  const { line, url } = await spawnSandbox(t, ...options, '--merchant', 'M2000:another')
  assert.ok(line.endsWith(`merchants: ${MCH_ID}, M2000`))
  assert.equal((await merchantOf(url).balance()).amount, 12_345)
  const { payParams } = (await merchantOf(url).create()).fields
  assert.match((payParams as { payUrl: string }).payUrl, /^http:\/\/pay\.test:8790\/checkout\/PI\d{18}$/)
})

test('a dialect file applies to all merchants, and a wrong one is reported in one line', async (t) => {
  const file = `${newStateFile()}.json`
  writeFileSync(file, JSON.stringify({ extends: 'sandbox', sign: { failures: false } }))
  const options = ['--state', newStateFile(), '--merchant', `${MCH_ID}:${KEY}`, '--dialect', file]
  const { url } = await spawnSandbox(t, ...options)
  const refused = await merchantOf(url).apply({ currency: 'USD' })
  assert.deepEqual(Object.keys(refused.fields), ['retCode', 'retMsg'])
  writeFileSync(file, '{"body": "xml"}')
  const wrong = spawnSync(process.execPath, [MAIN, ...options], { encoding: 'utf8' })
  assert.equal(wrong.status, 1)
  assert.match(wrong.stderr, /^sandbox: the dialect file .* is wrong: body: .*\n$/)
})

test('a wrong --merchant and a port in use are reported in one line, without the key', async (t) => {
  const running = await spawnSandbox(t, '--state', newStateFile(), '--merchant', `${MCH_ID}:${KEY}`)
  const failed = (...options: string[]) =>
    spawnSync(process.execPath, [MAIN, '--state', newStateFile(), ...options], { encoding: 'utf8' })
  const wrong = failed('--merchant', `:${KEY}`)
  assert.equal(wrong.status, 1)
  assert.equal(wrong.stderr, 'sandbox: --merchant must be written MCHID:KEY\n')
  const port = new URL(running.url).port
  const taken = failed('--port', port)
  assert.equal(taken.status, 1)
  assert.match(taken.stderr, new RegExp(`^sandbox: port ${port} on 127.0.0.1 is taken: .*\\n$`))
})

test('all faults of the options are reported at once, including a duplicate merchant, without a key', () => {
  const file = `${newStateFile()}.json`
  writeFileSync(file, JSON.stringify({ merchants: [{ mchId: 'M2', key: 'secret-1' }] }))
  const dialect = `${newStateFile()}.json`
  writeFileSync(dialect, '{"sing": {}}')
  const options = ['--port', 'x', '--fee-flat', '-5', '--callback-retries', '1,', '--public-url', 'ftp://x']
  const merchants = ['M1:secret-2', 'M1:secret-3', 'M2:secret-4', 'M3'].flatMap((each) => [
    '--merchant',
    each,
  ])
  const files = ['--state', newStateFile(), '--seed', file, '--dialect', dialect]
  const { status, stderr } = spawnSync(process.execPath, [MAIN, ...options, ...merchants, ...files], {
    encoding: 'utf8',
  })
  assert.equal(status, 1)
  const twice = 'is given more than once: its older keys belong in olderKeys of a seed file'
  assert.deepEqual(stderr.split('\n'), [
    'sandbox: --port must be a whole number',
    'sandbox: --fee-flat must be a whole number of at most 15 digits',
    'sandbox: --callback-retries must be whole numbers of seconds with commas',
    'sandbox: --public-url must be an http or https URL without a path',
    'sandbox: --merchant must be written MCHID:KEY',
    `sandbox: the dialect file ${dialect} is wrong: sing: is not known here`,
    `sandbox: merchant M1 ${twice}`,
    `sandbox: merchant M2 ${twice}`,
    '',
  ])
})
