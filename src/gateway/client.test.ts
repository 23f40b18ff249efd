import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { inspect } from 'node:util'
import type { Exchange } from '../domain/evidence.ts'
import { paise } from '../domain/money.ts'
import type { Clock } from '../platform/running/clock.ts'
import { createGatewayClient, type GatewayClient } from './client.ts'
import type { Dialect } from './dialect/dialect.ts'
import {
  DIALECT,
  EVERY_VARIANT,
  KEY,
  ORDER,
  PAYIN,
  rulesOf,
  type Seen,
  signedJson,
  startServer,
} from './testing.ts'
import { verify } from './wire/sign.ts'

const clock: Clock = { now: () => Date.UTC(2026, 10, 21, 18, 45, 7), monotonic: () => 0 }
const free = { mayStillSend: () => true }
const ACCEPTED = signedJson({ retCode: 'SUCCESS', agentpayOrderId: 'AP1', fee: 300, status: 1 })

async function clientOf(
  t: TestContext,
  answer: string | ((seen: Seen, response: ServerResponse) => void),
  options: { dialect?: Dialect; path?: string } = {},
) {
  const { url, seen } = await startServer(t, (one, response) => {
    if (typeof answer === 'string') response.end(answer)
    else answer(one, response)
  })
  const { dialect = DIALECT, path = '' } = options
  let timesMixedUp = 0
  const client = createGatewayClient({
    baseUrl: url + path,
    mchId: '20001',
    key: KEY,
    dialect,
    connections: 2,
    clock,
    mixedUp: async () => void timesMixedUp++,
  })
  t.after(() => client.close())
  return { client, url, seen, only: () => seen[0] as Seen, timesMixedUp: () => timesMixedUp }
}

const isSigned = (fields: Map<string, string>) => verify(fields, KEY, DIALECT.sign, 'requests') === 'good'

test('sends a payout as the contract wants it: whole paise, BANK, the IFSC in a JSON text, and signed', async (t) => {
  const { client, only } = await clientOf(t, ACCEPTED)
  const answer = await client.apply(ORDER, free)
  assert.equal(answer.kind === 'accepted' && answer.agentpayOrderId, 'AP1')
  const { path, headers, body } = only()
  assert.equal(path, '/api/agentpay/apply')
  assert.equal(headers['content-type'], 'application/x-www-form-urlencoded')
  const form = new Map(new URLSearchParams(body))
  assert.ok(isSigned(form))
  form.delete('sign')
  assert.deepEqual(Object.fromEntries(form), {
    ...{ mchId: '20001', mchOrderNo: ORDER.mchOrderNo, amount: '1234500', currency: 'INR' },
    ...{ phoneNumber: '9876543210', payerEmail: 'asha.menon@example.in', accountName: 'Asha Menon' },
    ...{ accountNo: '50100123456789', accountBankCode: 'BANK', extra: '{"value":"HDFC0001234"}' },
    ...{ notifyUrl: ORDER.notifyUrl, remark: 'November salary' },
  })
})

test('sends no missing fields', async (t) => {
  const { client, only } = await clientOf(t, ACCEPTED)
  await client.apply({ ...ORDER, accountName: null, phoneNumber: null, payerEmail: null, remark: null }, free)
  assert.deepEqual([...new URLSearchParams(only().body).keys()].sort(), [
    ...[
      'accountBankCode',
      'accountNo',
      'amount',
      'currency',
      'extra',
      'mchId',
      'mchOrderNo',
      'notifyUrl',
      'sign',
    ],
  ])
})

test('a payout to a VPA carries the given account number, or the VPA, as the dialect says', async (t) => {
  const order = { ...ORDER, ifsc: null, vpa: 'asha@okaxis' }
  for (const vpaAccountNo of ['given', 'vpa'] as const) {
    const { client, only } = await clientOf(t, ACCEPTED, { dialect: { ...DIALECT, vpaAccountNo } })
    await client.apply(order, free)
    const form = new URLSearchParams(only().body)
    assert.equal(form.get('extra'), '{"value":"asha@okaxis"}')
    assert.equal(form.get('accountNo'), vpaAccountNo === 'vpa' ? 'asha@okaxis' : ORDER.accountNo)
  }
})

test('the body is JSON, with the amount as a number, if the dialect says so', async (t) => {
  const { client, only } = await clientOf(t, ACCEPTED, { dialect: { ...DIALECT, body: 'json' } })
  await client.apply({ ...ORDER, accountName: 'José "Pepe" राम' }, free)
  const { headers, body } = only()
  assert.equal(headers['content-type'], 'application/json')
  const json = JSON.parse(body)
  assert.equal(json.amount, 1_234_500)
  assert.equal(json.accountName, 'José "Pepe" राम')
  assert.ok(isSigned(new Map(Object.entries(json))))
})

test('the parameters travel in the query string of a POST if the dialect says so', async (t) => {
  const { client, only } = await clientOf(t, ACCEPTED, {
    dialect: { ...DIALECT, body: 'query' },
    path: '/v1/',
  })
  await client.apply(ORDER, free)
  const { path, body } = only()
  const url = new URL(path, 'http://gateway')
  assert.equal(url.pathname, '/v1/api/agentpay/apply')
  assert.equal(body, '')
  assert.ok(isSigned(new Map(url.searchParams)))
})

/** Answers the first request once more when the next one comes on its connection, before its own answer, as a broken balancer may. */
async function repeating(t: TestContext, answer: (mchOrderNo: string) => string): Promise<string> {
  let isFirst = true
  const server = createServer((socket) => {
    let copy: string | null = null
    const say = (body: string) =>
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      const body = answer(/mchOrderNo=([^&]*)/.exec(chunk.toString())?.[1] ?? '')
      if (copy !== null) say(copy)
      copy = isFirst ? body : null
      isFirst = false
      say(body)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

for (const retCode of ['SUCCESS', 'IFSC_INVALID', 'TOO_FAST'])
  test(`an answer that comes twice (${retCode}) answers no other request`, async (t) => {
    const baseUrl = await repeating(t, (mchOrderNo) =>
      signedJson(
        mchOrderNo === 'P1' && retCode !== 'SUCCESS'
          ? { retCode, retMsg: 'no' }
          : { retCode: 'SUCCESS', agentpayOrderId: `A${mchOrderNo}`, fee: 0, status: 1 },
      ),
    )
    const client = createGatewayClient({
      ...{ baseUrl, mchId: '20001', key: KEY, dialect: DIALECT, connections: 1, clock },
    })
    t.after(() => client.close())
    const told: string[] = []
    for (const mchOrderNo of ['P1', 'P2', 'P3', 'P4']) {
      const answer = await client.apply({ ...ORDER, mchOrderNo }, free)
      told.push(answer.kind === 'accepted' ? answer.agentpayOrderId : answer.kind)
    }
    const [first, ...others] = told
    const failure = retCode === 'TOO_FAST' ? 'retry-later' : 'refused'
    assert.equal(first, retCode === 'SUCCESS' ? 'AP1' : failure)
    assert.deepEqual(others, [retCode === 'SUCCESS' ? 'unknown' : 'AP2', 'AP3', 'AP4'])
  })

for (const [what, numbers, ask] of [
  ['payout', { agentpayOrderId: 'N1' }, (client: GatewayClient) => client.query({ mchOrderNo: 'P1' })],
  [
    'payin',
    { payOrderId: 'N1' },
    (client: GatewayClient) => client.payinQuery({ mchOrderNo: 'P1' }, { executeNotify: false }),
  ],
] as const)
  test(`an answer to a ${what} query that comes twice answers no apply and no creation`, async (t) => {
    const baseUrl = await repeating(t, (mchOrderNo) =>
      signedJson({
        ...(mchOrderNo === 'P1'
          ? { retCode: 'SUCCESS', mchOrderNo, ...numbers, amount: 100 }
          : { retCode: 'SUCCESS', agentpayOrderId: `A${mchOrderNo}`, payOrderId: `A${mchOrderNo}` }),
        status: 1,
      }),
    )
    const client = createGatewayClient({
      ...{ baseUrl, mchId: '20001', key: KEY, dialect: DIALECT, connections: 1, clock },
    })
    t.after(() => client.close())
    await ask(client)
    const told: string[] = []
    for (const mchOrderNo of ['P2', 'P3']) {
      const answer =
        what === 'payout'
          ? await client.apply({ ...ORDER, mchOrderNo }, free)
          : await client.payinCreate({ ...PAYIN, mchOrderNo }, free)
      told.push(
        answer.kind !== 'accepted'
          ? answer.kind
          : 'payOrderId' in answer
            ? answer.payOrderId
            : answer.agentpayOrderId,
      )
    }
    assert.deepEqual(told, ['unknown', 'AP3'])
  })

test('an answer to an apply or a creation with the number of another order shows that answers are mixed up', async (t) => {
  const answer = { retCode: 'SUCCESS', agentpayOrderId: '1001', payOrderId: '1001', fee: 0, status: 1 }
  for (const send of [
    (client: GatewayClient, mchOrderNo: string) => client.apply({ ...ORDER, mchOrderNo }, free),
    (client: GatewayClient, mchOrderNo: string) => client.payinCreate({ ...PAYIN, mchOrderNo }, free),
  ]) {
    const { client, timesMixedUp } = await clientOf(t, signedJson(answer))
    assert.equal((await send(client, 'P1')).kind, 'accepted')
    assert.equal(timesMixedUp(), 0)
    const other = await send(client, 'P2')
    assert.equal(other.kind === 'unknown' && other.reason, 'other-order')
    assert.equal(timesMixedUp(), 1)
  }
  const { client } = await clientOf(t, ({ body }, response) => {
    response.end(signedJson({ ...answer, mchOrderNo: new URLSearchParams(body).get('mchOrderNo') }))
  })
  await client.apply({ ...ORDER, mchOrderNo: 'P1' }, free)
  const merged = await client.apply({ ...ORDER, mchOrderNo: 'P2' }, free)
  assert.equal(merged.kind === 'unknown' && merged.reason, 'other-order', 'though it names this order')
})

test('a failure that names another order is no answer about this one, and shows that answers are mixed up', async (t) => {
  for (const ask of [
    (client: GatewayClient) => client.apply(ORDER, free),
    (client: GatewayClient) => client.query({ mchOrderNo: 'P1' }),
    (client: GatewayClient) => client.balance(),
    (client: GatewayClient) => client.payinQuery({ mchOrderNo: 'P1' }, { executeNotify: false }),
  ]) {
    for (const retCode of ['ORDER_NOT_FOUND', 'TOO_FAST', 'IFSC_INVALID']) {
      const { client, timesMixedUp } = await clientOf(t, signedJson({ retCode, mchOrderNo: 'P2' }))
      const heard = await ask(client)
      assert.equal(heard.kind === 'unknown' && heard.reason, 'other-order')
      assert.equal(timesMixedUp(), 1)
    }
  }
  for (const names of [{ mchOrderNo: 'P1' }, { agentpayOrderId: 0 }, { agentpayOrderId: 'AP1' }, {}]) {
    const { client, timesMixedUp } = await clientOf(t, signedJson({ retCode: 'ORDER_NOT_FOUND', ...names }))
    assert.equal((await client.query({ mchOrderNo: 'P1' })).kind, 'not-found')
    assert.equal(timesMixedUp(), 0)
  }
})

test('a failure that names an order by the number that the gateway gave it is about that one', async (t) => {
  const { client, timesMixedUp } = await clientOf(t, (seen, response) =>
    response.end(
      seen.path.endsWith('apply')
        ? ACCEPTED
        : signedJson({ retCode: 'ORDER_NOT_FOUND', agentpayOrderId: 'AP1' }),
    ),
  )
  await client.apply(ORDER, free)
  assert.equal((await client.query({ mchOrderNo: ORDER.mchOrderNo })).kind, 'not-found')
  assert.equal((await client.query({ agentpayOrderId: 'AP1' })).kind, 'not-found')
  assert.equal(timesMixedUp(), 0)
  const heard = await client.query({ mchOrderNo: 'P2' })
  assert.equal(heard.kind === 'unknown' && heard.reason, 'other-order')
  assert.equal(timesMixedUp(), 1)
})

test('an answer that can only be to another kind of question shows that answers are mixed up', async (t) => {
  const balance = '{"retCode":"SUCCESS","busNo":"B1","availableAmount":4}'
  const found = signedJson({
    retCode: 'SUCCESS',
    mchOrderNo: 'P1',
    agentpayOrderId: 'AP1',
    amount: 100,
    status: 1,
  })
  for (const [answer, ask] of [
    [found, (client: GatewayClient) => client.balance()],
    [balance, (client: GatewayClient) => client.apply(ORDER, free)],
    [balance, (client: GatewayClient) => client.query({ mchOrderNo: 'P1' })],
  ] as const) {
    const { client, timesMixedUp } = await clientOf(t, answer)
    const heard = await ask(client)
    assert.equal(heard.kind === 'unknown' && heard.reason, 'other-order')
    assert.equal(timesMixedUp(), 1)
  }
})

test('a payout and a payin may have one number: the gateway counts them apart', async (t) => {
  const { client } = await clientOf(
    t,
    signedJson({ retCode: 'SUCCESS', agentpayOrderId: '1001', payOrderId: '1001', fee: 0, status: 1 }),
  )
  const kinds = [await client.apply(ORDER, free), await client.payinCreate(PAYIN, free)].map(
    ({ kind }) => kind,
  )
  assert.deepEqual(kinds, ['accepted', 'accepted'])
})

test('a query asks by one number, at the dialect’s time, and trusts only an answer about that order', async (t) => {
  const found = { retCode: 'SUCCESS', mchOrderNo: 'P1', agentpayOrderId: 'AP1', amount: 10_000, status: 1 }
  const { client, seen, timesMixedUp } = await clientOf(t, signedJson(found))
  const answer = await client.query({ mchOrderNo: 'P1' })
  assert.equal(answer.kind === 'found' && answer.report.status, 'processing')
  assert.deepEqual(answer.kind === 'found' && answer.report.exchange, {
    request: { mchId: '20001', mchOrderNo: 'P1', reqTime: '20261122001507' },
    response: { retCode: 'SUCCESS', mchOrderNo: 'P1', agentpayOrderId: 'AP1', amount: '10000', status: '1' },
    ...{ httpStatus: 200, tookMs: 0 },
  })
  assert.equal((await client.query({ agentpayOrderId: 'AP1' })).kind, 'found')
  assert.equal(timesMixedUp(), 0)
  const other = await client.query({ mchOrderNo: 'P2' })
  assert.equal(other.kind === 'unknown' && other.reason, 'other-order')
  assert.equal(timesMixedUp(), 1)
  assert.deepEqual(
    seen.map(({ path }) => path),
    Array(3).fill('/api/pay/orderquery'),
  )
  const names = seen.map(({ body }) => [...new URLSearchParams(body).keys()].join())
  assert.deepEqual(names, ['mchId,mchOrderNo,reqTime,sign', 'mchId,agentpayOrderId,reqTime,sign', names[0]])
})

test('reads the balance from an answer without a signature', async (t) => {
  const { client, only } = await clientOf(
    t,
    '{"retCode":"SUCCESS","busNo":"B1","amount":5,"frozenAmount":1,"availableAmount":4,"pendingAmount":0,"unsettledAmount":0}',
  )
  const answer = await client.balance()
  assert.equal(answer.kind === 'balance' && answer.availableAmount, 4n)
  assert.equal(only().path, '/api/agentpay/query_balance')
  assert.ok(isSigned(new Map(new URLSearchParams(only().body))))
})

test('a payout that could forge a field never leaves, and its evidence says what to write instead', async (t) => {
  const { client, seen } = await clientOf(t, ACCEPTED)
  const answer = await client.apply({ ...ORDER, remark: 'Rao & Sons' }, free)
  assert.equal(answer.kind === 'not-sent' && answer.reason, 'unsafe-value')
  assert.match(answer.exchange.note ?? '', /^remark must not hold "&".*"Rao and Sons"/)
  assert.equal(seen.length, 0)
})

test('requests a payin as the contract wants it, and signs it', async (t) => {
  const created = signedJson({ retCode: 'SUCCESS', payOrderId: 'PI1' })
  const { client, seen } = await clientOf(t, created)
  const answer = await client.payinCreate(PAYIN, free)
  assert.equal(answer.kind === 'accepted' && answer.payOrderId, 'PI1')
  const anonymous = { phoneNumber: null, payerEmail: null, accountName: null, returnUrl: null }
  await client.payinCreate({ ...PAYIN, ...anonymous }, free)
  const [first, second] = seen.map(({ body }) => new Map(new URLSearchParams(body)))
  assert.deepEqual(
    seen.map(({ path }) => path),
    Array(2).fill('/api/pay/neworder'),
  )
  assert.ok(first && isSigned(first) && second && isSigned(second))
  first.delete('sign')
  assert.deepEqual(Object.fromEntries(first), { ...PAYIN, mchId: '20001', amount: '25000' })
  const few = ['amount', 'currency', 'mchId', 'mchOrderNo', 'notifyUrl', 'remark', 'sign']
  assert.deepEqual([...second.keys()].sort(), few)
})

test('a payin query asks by one number, and says whether it wants the callback again', async (t) => {
  const known = { retCode: 'SUCCESS', mchOrderNo: 'C1', payOrderId: 'PI1', amount: 25_000, status: 2 }
  for (const body of ['form', 'json'] as const) {
    const { client, seen, timesMixedUp } = await clientOf(t, signedJson(known), {
      dialect: { ...DIALECT, body },
    })
    assert.equal((await client.payinQuery({ mchOrderNo: 'C1' }, { executeNotify: false })).kind, 'known')
    assert.equal((await client.payinQuery({ payOrderId: 'PI1' }, { executeNotify: true })).kind, 'known')
    const other = await client.payinQuery({ payOrderId: 'PI2' }, { executeNotify: false })
    assert.equal(other.kind === 'unknown' && other.reason, 'other-order')
    assert.equal(timesMixedUp(), 1)
    assert.deepEqual(
      seen.map(({ path }) => path),
      Array(3).fill('/api/pay/orderquery'),
    )
    const asked = seen.map((one) => {
      const { sign, ...rest } =
        body === 'json' ? JSON.parse(one.body) : Object.fromEntries(new URLSearchParams(one.body))
      assert.ok(isSigned(new Map(Object.entries({ ...rest, sign }))))
      return rest
    })
    const literal = (value: boolean) => (body === 'json' ? value : String(value))
    assert.deepEqual(asked, [
      { mchId: '20001', mchOrderNo: 'C1', executeNotify: literal(false) },
      { mchId: '20001', payOrderId: 'PI1', executeNotify: literal(true) },
      { mchId: '20001', payOrderId: 'PI2', executeNotify: literal(false) },
    ])
  }
})

test('a recovery sends the gateway’s order number and the UTR', async (t) => {
  const { client, only } = await clientOf(
    t,
    signedJson({ retCode: 'SUCCESS', agentpayOrderId: 'PI1', extra: null }),
  )
  const answer = await client.payinRecover({ payOrderId: 'PI1', utr: '432112345678' })
  assert.equal(answer.kind, 'submitted')
  assert.equal(only().path, '/api/pay/replace')
  const form = new Map(new URLSearchParams(only().body))
  assert.ok(isSigned(form))
  form.delete('sign')
  assert.deepEqual(Object.fromEntries(form), {
    mchId: '20001',
    payOrderId: 'PI1',
    channelPayNo: '432112345678',
  })
})

test('every operation uses every dialect: each way of signing, each place for parameters', async (t) => {
  const gateway = { dialect: DIALECT }
  const { url, seen } = await startServer(t, ({ path }, response) => {
    const numbers = {
      ...(path.includes('orderquery') && { mchOrderNo: 'C1' }),
      ...{ agentpayOrderId: 'AP1', payOrderId: path.includes('neworder') ? 'PI1' : 'AP1' },
    }
    const amounts = { frozenAmount: 1, availableAmount: 4, pendingAmount: 0, unsettledAmount: 0 }
    const answer = path.startsWith(DIALECT.paths.balance) ? amounts : { ...numbers, status: 2, extra: '' }
    response.end(signedJson({ retCode: 'SUCCESS', ...answer, amount: 5 }, gateway.dialect))
  })
  for (const variant of EVERY_VARIANT) {
    for (const body of ['form', 'json', 'query'] as const) {
      const dialect = { ...DIALECT, body, sign: rulesOf(variant) }
      gateway.dialect = dialect
      const client = createGatewayClient({
        baseUrl: url,
        mchId: '20001',
        key: KEY,
        dialect,
        connections: 1,
        clock,
      })
      const answers = [
        await client.apply(ORDER, free),
        await client.query({ mchOrderNo: 'C1' }),
        await client.balance(),
        await client.payinCreate({ ...PAYIN, remark: '' }, free),
        await client.payinQuery({ mchOrderNo: 'C1' }, { executeNotify: true }),
        await client.payinRecover({ payOrderId: 'AP1', utr: '432112345678' }),
      ]
      await client.close()
      const kinds = answers.map(({ kind }) => kind)
      assert.deepEqual(kinds, ['accepted', 'found', 'balance', 'accepted', 'known', 'submitted'])
      for (const { path, body: text } of seen.splice(0)) {
        const fields =
          body === 'json'
            ? Object.entries(JSON.parse(text))
            : [...new URLSearchParams(text || path.split('?')[1])]
        assert.equal(verify(new Map(fields as [string, string][]), KEY, dialect.sign, 'requests'), 'good')
      }
    }
  }
})

test('in every operation, a request that breaks a rule never leaves, and the answer has every fault at once', async (t) => {
  const { client, seen } = await clientOf(t, ACCEPTED)
  const faultsOf = (answer: { exchange: Exchange }) =>
    answer.exchange.faults?.map(({ field, rule }) => `${field} ${rule}`)
  const wrong = { amount: paise(50), phoneNumber: '12', remark: 'a=b' }
  const applied = await client.apply({ ...ORDER, ...wrong }, free)
  assert.equal(applied.kind === 'not-sent' && applied.reason, 'unsafe-value')
  assert.deepEqual(faultsOf(applied), ['amount whole-rupees', 'phoneNumber phone', 'remark signature-safe'])
  const created = await client.payinCreate({ ...PAYIN, ...wrong, remark: null }, free)
  assert.equal(created.kind === 'not-sent' && created.reason, 'invalid-value')
  assert.deepEqual(faultsOf(created), ['amount whole-rupees', 'phoneNumber phone'])
  assert.equal(
    created.exchange.note,
    'amount must be a multiple of 100 paise; phoneNumber must be 10 digits, the first 6 to 9',
  )
  const untyped = {
    ...PAYIN,
    amount: 250.5,
    phoneNumber: undefined,
    accountName: 7,
  } as unknown as typeof PAYIN
  const types = ['amount type', 'phoneNumber type', 'accountName type']
  assert.deepEqual(faultsOf(await client.payinCreate(untyped, free)), types)
  const about = { ...ORDER, notifyUrl: 'https://pay.example.in/x?a=1', accountNo: '12', vpa: 'x' }
  assert.deepEqual(faultsOf(await client.apply(about, free)), [
    ...['accountNo account-no', 'vpa vpa', 'notifyUrl no-query', 'ifsc one-of-two'],
  ])
  const nothing = await client.payinQuery({} as { mchOrderNo: string }, {} as { executeNotify: boolean })
  assert.equal(
    nothing.kind === 'unknown' && nothing.exchange.note,
    'executeNotify must be true or false; payOrderId must be given, or mchOrderNo, and not both',
  )
  assert.deepEqual(nothing.kind === 'unknown' && nothing.exchange.request, { mchId: '20001' })
  const unsent = [
    await client.query({ mchOrderNo: '' }),
    await client.payinQuery({ payOrderId: 'P'.repeat(31) }, { executeNotify: false }),
    await client.payinRecover({ payOrderId: 'PI1', utr: '1&payOrderId=2' }),
  ]
  const reasons = unsent.map((each) =>
    each.kind === 'unknown' ? [each.reason, faultsOf(each)?.join()] : each.kind,
  )
  assert.deepEqual(reasons, [
    ['not-sent', 'mchOrderNo length'],
    ['not-sent', 'payOrderId length'],
    ['not-sent', 'channelPayNo signature-safe'],
  ])
  assert.equal(seen.length, 0)
})

test('keeps nothing about the payer that the gateway repeats', async (t) => {
  const { client } = await clientOf(t, (seen, response) => {
    response.end(
      JSON.stringify({
        retCode: 'SUCCESS',
        payOrderId: 'PI2026112100001',
        retMsg: decodeURIComponent(seen.body),
        sign: 'x',
      }),
    )
  })
  const answer = await client.payinCreate(PAYIN, free)
  assert.equal(answer.kind === 'unknown' && answer.reason, 'bad-signature')
  for (const detail of [PAYIN.phoneNumber, PAYIN.payerEmail, PAYIN.accountName]) {
    assert.ok(!inspect(answer, { depth: 20 }).includes(detail as string))
  }
  assert.equal(answer.exchange.response?.payOrderId, 'PI2026112100001')
})

test('sends nothing after the lease has ended', async (t) => {
  const { client, seen } = await clientOf(t, ACCEPTED)
  const ended = { mayStillSend: () => false }
  for (const answer of [await client.apply(ORDER, ended), await client.payinCreate(PAYIN, ended)]) {
    assert.equal(answer.kind === 'not-sent' && answer.reason, 'lease-ended')
  }
  assert.equal(seen.length, 0)
})

test('sends nothing if nobody can say whether it may still send, and gives that as the reason', async (t) => {
  const { client, seen } = await clientOf(t, ACCEPTED)
  const broken = {
    mayStillSend: () => {
      throw new Error('the lease is lost')
    },
  }
  const untyped = {} as typeof broken
  for (const lease of [broken, untyped]) {
    for (const answer of [await client.apply(ORDER, lease), await client.payinCreate(PAYIN, lease)]) {
      assert.equal(answer.kind === 'not-sent' && answer.reason, 'lease-check-failed')
      assert.equal(answer.exchange.note, 'LEASE_CHECK_FAILED')
    }
  }
  assert.equal(seen.length, 0)
})

test('follows no redirect: it proves nothing', async (t) => {
  const { client, seen } = await clientOf(t, (_, response) => {
    response.writeHead(302, { location: '/api/agentpay/apply' }).end(ACCEPTED)
  })
  const answer = await client.apply(ORDER, free)
  assert.equal(answer.kind === 'unknown' && answer.reason, 'http-status')
  assert.equal(answer.exchange.httpStatus, 302)
  assert.equal(seen.length, 1)
})

test('nothing printable of a client or of its answers contains the key, the signature or an account', async (t) => {
  const { client, only } = await clientOf(t, (seen, response) => {
    response.end(JSON.stringify({ retCode: 'SUCCESS', retMsg: `you sent ${seen.body}`, sign: 'wrong' }))
  })
  const answer = await client.apply(ORDER, free)
  assert.equal(answer.kind === 'unknown' && answer.reason, 'bad-signature')
  const sign = new URLSearchParams(only().body).get('sign') as string
  const printed = [client, answer].map(
    (each) => inspect(each, { depth: 20, showHidden: true }) + String(each),
  )
  for (const secret of [
    KEY,
    sign,
    ORDER.accountNo,
    ORDER.payerEmail as string,
    ORDER.phoneNumber as string,
  ]) {
    assert.ok(!printed.some((text) => text.includes(secret)))
  }
})

test('the settings hash changes with everything that decides what a query can find, and with nothing else', () => {
  const settings = {
    baseUrl: 'https://gateway.example',
    mchId: '1',
    key: KEY,
    dialect: DIALECT,
    connections: 1,
    clock,
  }
  const hash = (change: Partial<typeof settings>) =>
    createGatewayClient({ ...settings, ...change }).settingsHash
  const same = hash({})
  assert.equal(hash({ connections: 9 }), same)
  assert.equal(hash({ baseUrl: 'https://gateway.example/' }), same)
  const paths = { ...DIALECT.paths, payoutQuery: '/api/pay/query_order' }
  const others = [
    ...[hash({ baseUrl: 'https://other.example' }), hash({ mchId: '2' }), hash({ key: `${KEY}x` })],
    hash({ dialect: { ...DIALECT, paths } }),
  ]
  assert.equal(new Set([same, ...others]).size, 5)
  assert.match(same, /^[0-9a-f]{64}$/)
})

test('refuses an invalid base URL, or one with a password, without repeating it', () => {
  for (const baseUrl of [
    '',
    'gateway',
    'ftp://gateway',
    'https://user:secret@gateway',
    'https://gateway/?x=1',
  ]) {
    assert.throws(
      () => createGatewayClient({ baseUrl, mchId: '1', key: KEY, dialect: DIALECT, connections: 1, clock }),
      ({ message }: Error) => /base URL/.test(message) && !message.includes('secret'),
    )
  }
})
