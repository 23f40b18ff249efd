import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import pLimit from 'p-limit'
import { Agent, request } from 'undici'
import { startSandbox } from '../../devkit/sandbox/sandbox.ts'
import { loadDialect } from '../../src/gateway/dialect/dialect-file.ts'
import { signature } from '../../src/gateway/wire/sign.ts'
import { openCallbackEndpoints } from '../../test/callback-endpoints.ts'
import { anomaliesOf, brokenVersions, payoutsOf } from '../../test/ledger.ts'

/** `npm run fuzz` sends many more; half go to the sandbox and half to the callback endpoints. */
const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 2_000)
/** The same seed gives the same requests. */
const SEED = Number(process.env.FUZZ_SEED ?? 20_261_121)
const AT_ONCE = 16
/** Node reads at most 16 KB of a request's head, URL included. */
const HEAD_LIMIT = 15_000
/** Requests created at a time, so that later ones take no memory. */
const CHUNK = 500
/** Bytes by which the heap may grow from the first tenth to the end. They include what is kept for each order. */
const GROWTH = 16 * 1024 * 1024

const MERCHANT = { mchId: 'M1000', key: 'a-long-secret' }
const { sign: rules } = loadDialect('default')

type Fields = Readonly<Record<string, string>>
type Change = readonly [name: string, value: string | null]
type Way = 'whole' | (typeof SPOILT)[number]

/** Changes to a request after it was signed; none leaves a request that may be accepted. */
const SPOILT = ['repeated', 'bad-percent', 'bad-utf8', 'cut', 'both', 'text', 'huge'] as const

const WORDS = [
  ...[
    '',
    ' ',
    '\0',
    '%',
    '%00',
    '&',
    '=',
    'a&amount=100',
    '__proto__',
    'constructor',
    'null',
    'true',
    '[]',
    '{}',
  ],
  ...['1e4', '010000', '-100', '10000.0', '9007199254741092', '100', '10000', '9'.repeat(31), '१००', '0x64'],
  ...['{"value":{}}', '{"__proto__":{"value":"HDFC0001234"}}', '20261321120000', 'javascript:1', 'é@x.in'],
]
const odd: fc.Arbitrary<string> = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...WORDS) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 60 }) },
  { weight: 1, arbitrary: fc.integer({ min: 100, max: 7_000 }).map((length) => 'x'.repeat(length)) },
)

const changesTo = (names: readonly string[]): fc.Arbitrary<Change[]> => {
  const name = fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...names) }, { weight: 1, arbitrary: odd })
  const change: fc.Arbitrary<Change> = fc.tuple(name, fc.option(odd, { nil: null, freq: 4 }))
  return fc.array(change, { maxLength: 3 })
}

const requestTo = <Place extends string>(places: Readonly<Record<Place, Fields>>) =>
  fc.constantFrom(...(Object.keys(places) as Place[])).chain((place) =>
    fc.record({
      place: fc.constant(place),
      changes: changesTo(Object.keys(places[place])),
      signedWell: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, fc.constant(false)),
      way: fc.oneof({ weight: 6, arbitrary: fc.constant<Way>('whole') }, fc.constantFrom<Way[]>(...SPOILT)),
      number: fc.nat(20_000),
    }),
  )

/** A Map, because a parameter may be called `__proto__`. */
function changed(fields: Fields, changes: readonly Change[]): Map<string, string> {
  const all = new Map(Object.entries(fields))
  for (const [name, value] of changes) {
    if (value === null) all.delete(name)
    else if (name !== 'sign') all.set(name, value)
  }
  return all
}

const encode = (fields: Iterable<readonly [string, string]>): string =>
  [...fields].map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&')

/** Signs with another key unless `signedWell`. Empty fields are signed in neither direction. */
function signed(fields: Map<string, string>, signedWell: boolean, key: string): string {
  const sign = signature(fields, signedWell ? key : `not ${key}`, rules, 'callbacks')
  return encode([...fields, ['sign', sign] as const])
}

/** Spoils the text of parameters. */
function spoilt(text: string, way: Way): string {
  switch (way) {
    case 'repeated':
      return `${text}&sign=1`
    case 'bad-percent':
      return `${text}&x=%zz`
    case 'bad-utf8':
      return `${text}&x=%ff%fe`
    case 'cut':
      return text.slice(0, text.lastIndexOf('sign='))
    case 'huge':
      return `${text}&x=${'x'.repeat(1_000_000)}`
    case 'whole':
    case 'both':
    case 'text':
      return text
  }
}

/** Sends `count` random requests, some at once, and watches the heap. */
async function fuzz<Request>(
  arbitrary: fc.Arbitrary<Request>,
  count: number,
  send: (request: Request) => Promise<void>,
): Promise<void> {
  const limit = pLimit(AT_ONCE)
  let early = 0
  for (let done = 0; done < count; done += CHUNK) {
    const made = fc.sample(arbitrary, { seed: SEED + done, numRuns: Math.min(CHUNK, count - done) })
    await Promise.all(made.map((each) => limit(() => send(each))))
    if (done < count / 10) early = await heldBytes()
  }
  const growth = (await heldBytes()) - early
  assert.ok(growth < GROWTH, `the heap holds ${growth} bytes more than after the first tenth`)
}

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')
/** A decrease below this is chance. */
const SLACK = 200_000

/** Live bytes: buffers are freed some turns after their owners, so it waits until the number stops falling. */
async function heldBytes(): Promise<number> {
  for (let last = Number.POSITIVE_INFINITY; ; ) {
    await delay(100)
    collectGarbage()
    const { heapUsed, external } = process.memoryUsage()
    if (heapUsed + external > last - SLACK) return heapUsed + external
    last = heapUsed + external
  }
}

/** Posts. Null if the server cut off a request that is too large: its answer may be lost as well. */
type Post = (
  url: string,
  options: { type?: string; body?: string },
) => Promise<{ httpStatus: number; text: string } | null>

function posting(t: TestContext): Post {
  const keptAlive = new Agent({ connections: AT_ONCE })
  // A request that is cut off ends its connection, so no other request may use that.
  const oneEach = new Agent({ pipelining: 0 })
  t.after(() => Promise.all([keptAlive.close(), oneEach.close()]))
  return async (url, { type, body = null }) => {
    const headers = type === undefined ? {} : { 'content-type': type }
    const large = url.length + (body?.length ?? 0) > HEAD_LIMIT
    const dispatcher = large ? oneEach : keptAlive
    try {
      const answer = await request(url, { method: 'POST', headers, body, dispatcher })
      return { httpStatus: answer.statusCode, text: await answer.body.text() }
    } catch (error) {
      const { code = '' } = error as { code?: string }
      if (large && ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(code)) return null
      throw error
    }
  }
}

test('the sandbox never answers 5xx, accepts only valid requests, and its books add up', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'fuzz-'))
  const state = path.join(folder, 'state.sqlite')
  const sandbox = await startSandbox({ state, merchants: [MERCHANT], settleMs: 0, callbackRetries: [] })
  t.after(async () => {
    await sandbox.stop()
    rmSync(folder, { recursive: true })
  })
  const post = posting(t)
  const { mchId, key } = MERCHANT
  const order = {
    mchId,
    mchOrderNo: '',
    amount: '100',
    currency: 'INR',
    notifyUrl: 'http://127.0.0.1:9/never',
  }
  const payer = {
    phoneNumber: '9876501234',
    payerEmail: 'asha@example.in',
    accountName: 'Asha Rao',
    remark: 'x',
  }
  const payee = { accountNo: '50100123456789', accountBankCode: 'BANK', extra: '{"value":"HDFC0001234"}' }
  const asked = { mchId, mchOrderNo: '', reqTime: '20261121120000', agentpayOrderId: '' }
  const places = {
    '/api/agentpay/apply': { ...order, ...payer, ...payee },
    '/api/pay/neworder': { ...order, ...payer, returnUrl: 'https://shop.example.in/thanks' },
    '/api/pay/orderquery': { ...asked, payOrderId: '', executeNotify: 'true' },
    '/api/pay/query_order': asked,
    '/api/pay/replace': { mchId, payOrderId: 'PI202611210000000001', channelPayNo: '611210000001' },
    '/api/agentpay/query_balance': { mchId, reqTime: '20261121120000' },
  }
  const taken = { apply: 0, neworder: 0 }

  await fuzz(requestTo(places), REQUESTS / 2, async ({ place, changes, signedWell, way, number }) => {
    const fields: Fields = places[place]
    const numbered = 'mchOrderNo' in fields ? { ...fields, mchOrderNo: `F${number}` } : fields
    const text = signed(changed(numbered, changes), signedWell, key)
    const what = `${place} ${way} ${JSON.stringify(changes).slice(0, 300)}`
    const answer = await post(sandbox.url + place + (way === 'both' ? '?amount=100' : ''), {
      type: way === 'text' ? 'text/plain' : 'application/x-www-form-urlencoded',
      body: spoilt(text, way),
    })
    if (!answer) return
    assert.ok(answer.httpStatus < 500, `HTTP ${answer.httpStatus} to ${what}`)
    const { retCode } = JSON.parse(answer.text) as { retCode?: string }
    assert.ok(retCode, `no retCode to ${what}`)
    if (retCode !== 'SUCCESS') return
    assert.ok(signedWell && way === 'whole', `SUCCESS to ${what}`)
    if (place === '/api/agentpay/apply') taken.apply++
    if (place === '/api/pay/neworder') taken.neworder++
  })

  const books = (await (await fetch(`${sandbox.url}/_sandbox/books?mchId=${mchId}`)).json()) as {
    balancesAgree: boolean
    everything: { sum: string }
    orders: { total: number }
    payins: { total: number }
  }
  assert.equal(books.everything.sum, '0')
  assert.equal(books.balancesAgree, true)
  assert.ok(taken.apply > 0 && taken.neworder > 0, 'nothing was taken, so nothing was tried')
  assert.deepEqual([books.orders.total, books.payins.total], [taken.apply, taken.neworder])
})

test('the callback endpoints never answer 5xx, and answer success only to signed callbacks', async (t) => {
  const { ledger, key, payins, endpoints } = await openCallbackEndpoints(t)
  const post = posting(t)
  const places = { payout: endpoints.payout.fields, payin: endpoints.payin.fields }
  let successes = 0

  await fuzz(requestTo(places), REQUESTS / 2, async ({ place, changes, signedWell, way }) => {
    const text = spoilt(signed(changed(places[place], changes), signedWell, key), way)
    const what = `${place} ${way} ${JSON.stringify(changes).slice(0, 300)}`
    const inBody = way === 'both' || way === 'text'
    const answer = await post(way === 'text' ? endpoints[place].url : `${endpoints[place].url}?${text}`, {
      ...(inBody ? { type: 'text/plain', body: text } : {}),
    })
    if (!answer) return
    assert.ok(answer.httpStatus < 500, `HTTP ${answer.httpStatus} to ${what}`)
    assert.equal(answer.text === 'success', answer.httpStatus === 200, what)
    if (answer.httpStatus !== 200) return
    // Whatever the body says: only the query string is signed.
    assert.ok(signedWell && (way === 'whole' || way === 'both'), `success to ${what}`)
    successes++
  })

  assert.ok(successes > 0, 'nothing was taken, so nothing was tried')
  assert.deepEqual(await brokenVersions(ledger), [])
  assert.deepEqual((await payoutsOf(ledger)).length, 1)
  assert.deepEqual((await payins()).length, 1)
  assert.ok((await anomaliesOf(ledger)).length > 0)
})
