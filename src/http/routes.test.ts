import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { startSandbox } from '../../devkit/sandbox/sandbox.ts'
import { testLedger } from '../../test/ledger.ts'
import { brokenPayins, storedPayins } from '../../test/payins.ts'
import { startPayoutd } from '../app/start.ts'
import type { Config } from '../config/config.ts'
import type { Merchant } from '../config/merchants.ts'
import { queryPolicyOf } from '../gateway/dialect/dialect.ts'
import { loadDialect } from '../gateway/dialect/dialect-file.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { migrateAll } from '../ledger/tables/migrate-all.ts'
import type { Collector } from '../payins/collect.ts'
import { createHttpServer } from '../platform/http.ts'
import { readTopics } from '../platform/kafka/reader.ts'
import { readHeader } from '../platform/kafka/records.ts'
import { silentLogger } from '../platform/log.ts'
import { type Database, sql } from '../platform/postgres/postgres.ts'
import { systemClock } from '../platform/running/clock.ts'
import { eventually } from '../platform/running/eventually.fixture.ts'
import { pause } from '../platform/running/lifecycle.ts'
import { payinRoutes } from './routes.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'payins-'))
after(() => rmSync(folder, { recursive: true }))
let sandboxes = 0

const PAYER = {
  accountName: 'Zebulon Quagmire',
  phoneNumber: '9871234567',
  payerEmail: 'zebulon.quagmire@paid.example',
}

type Answer = { status: number; type: string | null; body: Record<string, unknown>; text: string }

type Settings = { publicUrl?: string; leaseMs?: number }

/** payoutd with the roles that payins need, beside a sandbox of its own that calls back at `publicUrl`. */
async function collecting(t: TestContext, { publicUrl, leaseMs }: Settings = {}) {
  const { ledger, config, codec } = await testLedger(t)
  const merchant = config.merchants.get('acme') as Merchant
  const { mchId, key } = merchant
  // payoutd first: a sandbox waits for the remaining connections.
  const ends = new AsyncDisposableStack()
  t.after(() => ends.disposeAsync())
  const sandbox = await startSandbox({
    state: path.join(folder, `${++sandboxes}.sqlite`),
    merchants: [{ mchId, key }],
    callbackRetries: [1],
  })
  ends.defer(() => sandbox.stop())
  const dialect = loadDialect('sandbox', {
    queryAfterMs: [500],
    sendTimeoutMs: { connect: 5_000, headers: 5_000 },
  })
  const merchants = new Map([
    [
      'acme',
      { ...merchant, baseUrl: sandbox.url, dialect: { ...dialect, leaseMs: leaseMs ?? dialect.leaseMs } },
    ],
  ])
  const lines: string[] = []
  const log = pino({ level: 'debug' }, { write: (line) => void lines.push(line) })
  await migrateAll(config, silentLogger)
  const payoutd = await startPayoutd(
    { ...config, publicUrl: publicUrl ?? null, merchants },
    new Set(['outcomes', 'relay']),
    log,
  )
  ends.defer(() => payoutd.stop())
  const call = async (method: string, where: string, body?: string, headers = {}): Promise<Answer> => {
    const response = await fetch(`${payoutd.internalUrl}/v1/payins${where}`, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body }),
    })
    const text = await response.text()
    const type = response.headers.get('content-type')?.split(';')[0] ?? null
    return { status: response.status, type, text, body: type?.includes('json') ? JSON.parse(text) : {} }
  }
  const create = (key: string, body: object, headers = {}) =>
    call('POST', '', JSON.stringify(body), { 'idempotency-key': key, ...headers })
  /** What a payer or a bank does on the sandbox's checkout page. Returns the payin as the sandbox sees it. */
  const press = async (payin: Answer, button: 'pay' | 'pay-untold' | 'fail') => {
    const { payUrl } = payin.body.checkout as { payUrl: string }
    const response = await fetch(`${payUrl}/${button}`, {
      method: 'POST',
      headers: { accept: 'application/json' },
    })
    return (await response.json()) as { utr: string | null; untoldUtrs: string[] }
  }
  const becomes = (payin: Answer, state: string) =>
    eventually(`the payin to be ${state}`, async () => {
      const { body } = await call('GET', `/${payin.body.payinId}`)
      return body.state === state
    })
  return { ledger, config, codec, payoutd, lines, call, create, press, becomes }
}

const faultsOf = ({ body }: Answer) =>
  (body.errors as { field: string; rule: string }[]).map(({ field, rule }) => [field, rule])

const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

test('a payin is created, paid on its page and called back, and its result is on Kafka', async (t) => {
  const { ledger, config, codec, call, create, press, becomes } = await collecting(t)
  const wanted = { amount: '50000', ...PAYER, remark: 'Order 7' }
  const created = await create('order-7', wanted, { traceparent: TRACEPARENT })
  assert.deepEqual([created.status, created.body.state, created.body.amount], [201, 'open', '50000'])
  const where = `/${created.body.payinId}`
  const qr = await call('GET', `${where}/qr.svg`)
  assert.deepEqual([qr.status, qr.type, qr.text.slice(0, 4)], [200, 'image/svg+xml', '<svg'])

  const { utr } = await press(created, 'pay')
  await becomes(created, 'paid')
  const { body: story } = await call('GET', where)
  assert.deepEqual([story.utr, story.version], [utr, 3])
  const history = story.history as { toState: string; source: string; exchange: object | null }[]
  assert.deepEqual(
    history.slice(0, 3).map(({ toState, source, exchange }) => [toState, source, exchange !== null]),
    [
      ['creating', 'COMMAND', false],
      ['open', 'CREATE', true],
      ['paid', 'CALLBACK', true],
    ],
  )
  assert.equal((await call('GET', `${where}/qr.svg`)).status, 409)

  const results: unknown[] = []
  const reading = readTopics({
    connection: config.kafka,
    topics: [ledger.topics.payinResults],
    onRecord: async ({ key, value, headers }) => {
      const decoded = await codec.decode(value)
      assert.ok('value' in decoded)
      const { payinId, status, amount, utr } = decoded.value as Record<string, unknown>
      if (payinId !== created.body.payinId) return
      const traceparent = readHeader(headers, 'traceparent')
      results.push([key?.toString(), readHeader(headers, 'ce_type'), traceparent, status, amount, utr])
    },
    log: silentLogger,
  })
  t.after(() => reading.stop())
  await eventually('the result', async () => results.length > 0)
  assert.deepEqual(results, [
    [`acme:${created.body.payinId}`, 'in.payoutd.PayinResult', TRACEPARENT, 'PAID', 50_000n, utr],
  ])
  assert.deepEqual(await ledger.db.run(brokenPayins, {}), [])
})

test('without any callback the poller learns of the payment, and asks the gateway to send none', async (t) => {
  const { call, create, press, becomes } = await collecting(t, { publicUrl: 'http://127.0.0.1:9' })
  const payin = await create('order-7', { amount: 50_000 })
  await press(payin, 'pay')
  await becomes(payin, 'paid')
  const { history } = (await call('GET', `/${payin.body.payinId}`)).body
  const asked = history as { source: string; exchange: { request: Record<string, string> } | null }[]
  const query = asked.at(-1)
  assert.deepEqual([query?.source, query?.exchange?.request.executeNotify], ['QUERY', 'false'])
})

test('a creation without enough time left in its lease is not sent, and fails', async (t) => {
  const { call, create } = await collecting(t, { leaseMs: 1_000 })
  const { status, body } = await create('order-7', { amount: 50_000 })
  assert.deepEqual([status, body.state, body.reason], [201, 'failed', 'lease-ended'])
  const { history } = (await call('GET', `/${body.payinId}`)).body
  const states = (history as { toState: string }[]).map(({ toState }) => toState)
  assert.deepEqual(states, ['creating', 'failed'])
})

test('a repeat is 200 with the same payin, another request under its key is 409', async (t) => {
  const { call, create } = await collecting(t)
  const first = await create('order-7', { amount: 50_000 })
  for (const body of ['{"amount":"50000"}', '\ufeff{"amount":50000}']) {
    const again = await call('POST', '', body, { 'idempotency-key': 'order-7' })
    assert.deepEqual([first.status, again.status, again.body.payinId], [201, 200, first.body.payinId])
  }
  const other = await create('order-7', { amount: 50_100 })
  assert.deepEqual(
    [other.status, other.type, other.body.type, other.body.payinId],
    [409, 'application/problem+json', 'urn:payoutd:problem:idempotency-conflict', first.body.payinId],
  )
})

const adopted = sql<object>`update merchants set settings_hash = 'adopted'`

test('while other settings are in force, a payin and a recovery are 503, and a repeat still shows the payin', async (t) => {
  const { create, call, ledger } = await collecting(t)
  const payin = await create('order-7', { amount: 50_000 })
  await ledger.db.run(adopted, {})
  const another = await create('order-8', { amount: 50_000 })
  const recover = JSON.stringify({ utr: '632611200001' })
  const recovery = await call('POST', `/${payin.body.payinId}/recover`, recover)
  for (const { status, body } of [another, recovery])
    assert.deepEqual([status, body.type], [503, 'urn:payoutd:problem:other-settings'])
  const again = await create('order-7', { amount: 50_000 })
  assert.deepEqual([again.status, again.body.payinId], [200, payin.body.payinId])
})

test('a payment that the gateway lost track of is recovered by its UTR, even after the payin failed', async (t) => {
  const { call, create, press, becomes } = await collecting(t)
  const payin = await create('order-7', { amount: 50_000 })
  const recover = (utr: string) => call('POST', `/${payin.body.payinId}/recover`, JSON.stringify({ utr }))
  const { untoldUtrs } = await press(payin, 'pay-untold')
  await press(payin, 'fail')
  await becomes(payin, 'failed')
  const wrong = await recover('632600000000')
  assert.deepEqual([wrong.status, wrong.body.type], [422, 'urn:payoutd:problem:recovery-not-found'])
  const right = await recover(untoldUtrs[0] as string)
  assert.deepEqual([right.status, right.body.payinId], [202, payin.body.payinId])
  await becomes(payin, 'paid')
  const late = await recover(untoldUtrs[0] as string)
  assert.deepEqual([late.status, late.body.title], [409, 'it is paid already'])
})

test('a request that breaks rules gets all of them in one answer, and payoutd neither stores nor sends anything', async (t) => {
  const { ledger, call, create } = await collecting(t)
  const wrong = {
    merchantId: 'acme',
    amount: 50_050,
    accountName: 'Rao & Sons',
    phoneNumber: '12345',
    payerEmail: 'a@b',
    remark: 'a=b',
    returnUrl: 'javascript:alert(1)',
    notifyUrl: 'https://example.in',
  }
  const answer = await call('POST', '', JSON.stringify(wrong))
  assert.deepEqual([answer.status, answer.type], [400, 'application/problem+json'])
  assert.deepEqual(faultsOf(answer), [
    ['Idempotency-Key', 'idempotency-key'],
    ['amount', 'whole-rupees'],
    ['accountName', 'signature-safe'],
    ['phoneNumber', 'phone'],
    ['payerEmail', 'email'],
    ['remark', 'signature-safe'],
    ['returnUrl', 'url'],
    ['notifyUrl', 'unknown-field'],
  ])
  assert.ok(!answer.text.includes('12345'))
  for (const amount of [
    '1e4',
    '010000',
    '-100',
    '10000.0',
    10_000.5,
    2 ** 53 + 100,
    10 ** 17,
    undefined,
    null,
    '',
    '0',
    true,
  ]) {
    const { status, body } = await create('order-8', { amount })
    assert.deepEqual(
      [status, (body.errors as { field: string }[])[0]?.field],
      [400, 'amount'],
      String(amount),
    )
  }
  const asNumber = (amount: string) =>
    call('POST', '', `{"amount":${amount}}`, { 'idempotency-key': 'order-8' })
  for (const amount of [
    '100000.000000000001',
    '10000.0',
    '1e4',
    '9007199254740993',
    '-0.00000000000000000001',
  ]) {
    const { status, body } = await asNumber(amount)
    assert.equal(status, 400, amount)
    assert.deepEqual(body.errors, [
      {
        field: 'amount',
        rule: 'type',
        message: 'must be a whole number of paise, as a number of at most 15 digits or as text',
      },
    ])
  }
  for (const returnUrl of [
    'https://shop.example.in/\ud800',
    'https://shop.example.in/\n',
    'shop.example.in',
  ]) {
    assert.deepEqual(faultsOf(await create('order-8', { amount: 50_000, returnUrl }))[0], [
      'returnUrl',
      'url',
    ])
  }
  for (const returnUrl of ['https://shop.example.in/?a=1&status=2', 'https://shop.example.in/#thanks']) {
    const faults = faultsOf(await create('order-8', { amount: 50_000, returnUrl }))
    assert.deepEqual(faults, [['returnUrl', 'signature-safe']])
  }
  assert.deepEqual(faultsOf(await create('order-8', { amount: 50_000, merchantId: 'nobody' })), [
    ['merchantId', 'merchant'],
  ])
  // The query string names the merchant, too; it must not name another one than the body.
  const key = { 'idempotency-key': 'order-8' }
  for (const [named, body] of [
    ['nobody', {}],
    ['nobody', { merchantId: 'acme' }],
  ] as const) {
    const json = JSON.stringify({ amount: 50_000, ...body })
    const refused = await call('POST', `?merchantId=${named}`, json, key)
    assert.deepEqual(faultsOf(refused), [['merchantId', 'merchant']])
  }
  assert.deepEqual(await ledger.db.run(storedPayins, {}), [])
})

test('an invalid request and an unknown payin are answered with a problem, too', async (t) => {
  const { ledger, call, create } = await collecting(t)
  const key = { 'idempotency-key': 'order-7' }
  const problem = ({ status, type }: Answer) => [status, type]
  const json = 'application/problem+json'
  assert.deepEqual(problem(await call('POST', '', '{"amount":', key)), [400, json])
  assert.deepEqual(problem(await call('POST', '', 'amount=1', { ...key, 'content-type': 'text/csv' })), [
    415,
    json,
  ])
  assert.deepEqual(problem(await call('POST', '', JSON.stringify({ remark: 'x'.repeat(70_000) }), key)), [
    413,
    json,
  ])
  assert.deepEqual(problem(await create('order-7', [])), [400, json])
  for (const body of ['', '{"amount":50000,"__proto__":{"remark":"a"}}'])
    assert.deepEqual(problem(await call('POST', '', body, key)), [400, json], body)
  assert.deepEqual(problem(await call('GET', '/CNOBODY')), [404, json])
  assert.deepEqual(problem(await call('GET', '/CNOBODY?merchantId=nobody')), [404, json])
  assert.deepEqual(problem(await call('GET', '/%00')), [404, json])
  assert.deepEqual(problem(await call('GET', '/CNOBODY/qr.svg')), [404, json])
  assert.deepEqual(problem(await call('POST', '/CNOBODY/recover', '{"utr":"632611200001"}')), [404, json])
  assert.deepEqual(problem(await call('POST', '/CNOBODY/recover', '{"utr":""}')), [400, json])
  await ledger.db.run(sql<object>`alter table payins rename to payins_away`, {})
  const away = await create('order-7', { amount: 50_000 })
  assert.deepEqual([...problem(away), away.text.includes('payins')], [503, json, false])
})

const everything = sql<object, { text: string }>`
  select concat((select json_agg(p) from payins p), (select json_agg(h) from history h),
                (select json_agg(a) from anomalies a)) as text`

test('nothing about the payer is kept or shown: not in the ledger, in answers, in metrics or in the log', async (t) => {
  const { ledger, config, payoutd, lines, call, create, press, becomes } = await collecting(t)
  const payin = await create('order-7', { amount: 50_000, ...PAYER })
  await press(payin, 'pay')
  await becomes(payin, 'paid')
  const story = await call('GET', `/${payin.body.payinId}`)
  const metrics = await (await fetch(`${payoutd.internalUrl}/metrics`)).text()
  const places = [
    (await ledger.db.run(everything, {}))[0]?.text ?? '',
    payin.text,
    story.text,
    metrics,
    lines.join(''),
  ]
  assert.ok(places.every((text) => text.length > 100))
  assert.match(places[0] ?? '', /accountName/)
  for (const secret of [...Object.values(PAYER), config.merchants.get('acme')?.key as string]) {
    places.forEach((text, i) => {
      assert.ok(!text.includes(secret), `place ${i} shows ${secret}`)
    })
  }
})

/** Creates payins of two merchants; once `answered`, no request has left for the gateway. */
function creating(
  t: TestContext,
  ledger: Ledger,
  config: Config,
  answered = async (): Promise<void> => undefined,
) {
  const collector: Collector = {
    ...{ accountId: 'here', settingsHash: 'h', leaseMs: 60_000, sendTimeoutMs: 1_000 },
    ...{ expireMs: 60_000, recover: new Map() },
    queryPolicy: queryPolicyOf(loadDialect('sandbox')),
    create: async () => {
      await answered()
      return { kind: 'not-sent', reason: 'lease-over', exchange: null } as never
    },
  }
  const server = createHttpServer()
  t.after(() => server.close())
  payinRoutes(server, {
    ...{ ledger, fingerprintKey: config.fingerprintKey, clock: systemClock },
    ...{ log: silentLogger, collectors: new Map(['acme', 'globex'].map((one) => [one, collector])) },
  })
  return (merchantId: string, key: string) =>
    server.inject({
      ...{ method: 'POST', url: '/v1/payins', headers: { 'idempotency-key': key } },
      payload: { merchantId, amount: '10000' },
    })
}

test('a merchant with 200 requests in hand is refused, others are not, and all use two connections at once', async (t) => {
  const { ledger, config } = await testLedger(t)
  let answer: () => void = () => undefined
  const answered = new Promise<void>((resolve) => {
    answer = resolve
  })
  let working = 0
  let most = 0
  const counted = async <T>(work: () => Promise<T>): Promise<T> => {
    most = Math.max(most, ++working)
    return work().finally(() => working--)
  }
  const db: Database = {
    ...ledger.db,
    run: (statement, params) => counted(() => ledger.db.run(statement, params)),
    transaction: (name, work) => counted(() => ledger.db.transaction(name, work)),
  }
  let asked = 0
  const create = creating(t, { ...ledger, db }, config, async () => {
    asked++
    await answered
  })
  const first = Array.from({ length: 200 }, (_, i) => create('acme', `order-${i}`))
  await eventually('all to be asked for', () => asked === 200)
  const turnedAway = await create('acme', 'order-200')
  assert.deepEqual(
    [turnedAway.statusCode, turnedAway.headers['retry-after'], turnedAway.json().type],
    [503, '1', 'urn:payoutd:problem:busy'],
  )
  const other = create('globex', 'order-1')
  await eventually('the other to be asked for', () => asked === 201)
  answer()
  const statuses = (await Promise.all([...first, other])).map(({ statusCode }) => statusCode)
  assert.deepEqual(new Set(statuses), new Set([201]))
  assert.equal(most, 2)
  assert.equal((await create('acme', 'order-200')).statusCode, 201)
})

test('payins of one merchant that wait for the database do not hold up those of another', async (t) => {
  const { ledger, config } = await testLedger(t)
  const over = Promise.withResolvers<void>()
  let waiting = 0
  let mayGo = false
  const db: Database = {
    ...ledger.db,
    transaction: async (name, work) => {
      if (!mayGo) {
        waiting++
        await over.promise
      }
      return ledger.db.transaction(name, work)
    },
  }
  const create = creating(t, { ...ledger, db }, config)
  const stuck = Array.from({ length: 20 }, (_, i) => create('acme', `order-${i}`))
  await eventually('some to wait', () => waiting > 0)
  mayGo = true
  const other = await Promise.race([create('globex', 'order-1'), pause(10_000, t.signal)])
  over.resolve()
  await Promise.all(stuck)
  assert.equal(other?.statusCode, 201)
})
