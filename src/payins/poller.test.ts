import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ACCOUNT, anomaliesOf, upsertMerchant } from '../../test/ledger.ts'
import { inOrderAgain, inOrderForLong, mixUp } from '../../test/mixed-answers.ts'
import {
  accepted,
  brokenPayins,
  outboxOf,
  POLICY,
  payinLedger,
  report,
  type StoredPayin,
  storedPayins,
  timeout,
} from '../../test/payins.ts'
import { paise } from '../domain/money.ts'
import type { PayinCreateAnswer, PayinQueryAnswer } from '../domain/payin/gateway-answers.ts'
import { PresenceCheck } from '../gateway/presence-check.ts'
import { silentLogger } from '../platform/log.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { systemClock } from '../platform/running/clock.ts'
import type { Querier } from '../stages/outcomes/poller.ts'
import { recoverPayin } from './collect.ts'
import type { PayinTerms } from './outcomes.ts'
import { payinPoller } from './poller.ts'

/** Advances the database's clock: everything that waits is due, and everything unknown has been for a minute. */
const laterOn = sql<object>`
  update payins set due_at = now(), unknown_since = unknown_since - interval '1 minute' where due_at is not null`
const expired = sql<object>`update payins set expires_at = now()`
/** So long ago that a process with the merchant would have asked. */
const overdue = sql<object>`update payins set expires_at = now() - interval '1 hour'`
const longOver = sql<object>`update payins set expires_at = now() - interval '30 days', created_at = now() - interval '31 days'`
const hoursToGo = sql<object, { hours: number | null }>`
  select round(extract(epoch from due_at - now()) / 3600)::int as hours from payins`
const notFound: PayinQueryAnswer = { kind: 'not-found', exchange: {} }

async function poller(
  t: TestContext,
  query: (payinId: string) => Promise<PayinQueryAnswer>,
  answer?: (payinId: string) => PayinCreateAnswer,
) {
  const opened = await payinLedger(t, answer)
  await opened.ledger.db.run(upsertMerchant, { merchantId: 'acme', ...ACCOUNT, feeEstimate: 0n })
  const asked: string[] = []
  const ask = (payinId: string) => {
    asked.push(payinId)
    return query(payinId)
  }
  const querier: Querier<PayinQueryAnswer> = { ...ACCOUNT, queryPolicy: POLICY, query: ask, timeoutMs: 1_000 }
  const queriers = new Map<string, [Querier<PayinQueryAnswer>]>([['acme', [querier]]])
  const presenceCheck = new PresenceCheck(systemClock)
  const terms = new Map(opened.outcomeDeps.terms)
  const outcomeDeps = { ...opened.outcomeDeps, terms }
  /** One round of everything that is due, with the settings of the moment. */
  const turn = async () => {
    const poller = payinPoller({ presenceCheck, ...outcomeDeps, queriers, log: silentLogger })
    await poller.turn()
    await poller.drain()
  }
  /** The same after time has passed. */
  const processAll = async () => {
    await opened.ledger.db.run(laterOn, {})
    await turn()
  }
  const states = async () =>
    (await opened.ledger.db.run(storedPayins, {})).map(({ state, reason }) => [state, reason])
  return { ...opened, outcomeDeps, turn, processAll, states, asked, queriers, querier }
}

test('payoutd asks about a payin without a callback until the gateway reports it paid', async (t) => {
  const answers: PayinQueryAnswer[] = []
  const { ledger, create, processAll, states } = await poller(t, async () => answers.shift() ?? notFound)
  const payin = await create('order-7')
  answers.push({ kind: 'retry', code: 'TOO_FAST', exchange: {} })
  answers.push({ kind: 'known', report: report(payin, 'pending') })
  answers.push({ kind: 'known', report: report(payin, 'paid') })
  await processAll()
  await processAll()
  assert.deepEqual(await states(), [['open', null]])
  await processAll()
  assert.deepEqual(await states(), [['paid', null]])
  assert.deepEqual(await ledger.db.run(brokenPayins, {}), [])
})

test('payoutd does not ask about a paid payin again', async (t) => {
  const { create, processAll, asked } = await poller(t, async () => ({
    kind: 'known',
    report: report(payin, 'paid'),
  }))
  const payin = await create('order-7')
  for (let i = 0; i < 3; i++) await processAll()
  assert.equal(asked.length, 1)
})

test('a process died while it created a payin: unknown, asked about, and open again', async (t) => {
  const { collect, create, processAll, states } = await poller(t, async () => ({
    kind: 'known',
    report: { ...report(lost, 'pending'), payOrderId: 'PO1' },
  }))
  const collector = collect.collectors.get('acme')
  assert.ok(collector)
  collector.create = () => Promise.reject(new Error('the process is killed here'))
  await assert.rejects(create('order-7'))
  const lost = await create('order-7')
  assert.deepEqual([lost.state, lost.checkout], ['creating', null])
  await processAll()
  assert.deepEqual(await states(), [['unknown', 'lease-ended']])
  await processAll()
  assert.deepEqual(await states(), [['open', null]])
})

const creating = sql<{ merchantId: string; count: number }>`
  insert into payins (merchant_id, payin_id, account_id, fingerprint, amount, currency, state, version, due_at, expires_at)
  select ${'merchantId'}, 'order-' || n, 'here', '\\x00', 50000, 'INR', 'creating', 1, now(), now() + interval '1 hour'
  from generate_series(1, ${'count'}::int) n`
const holdAcme = sql<object>`select from payins where merchant_id = 'acme' for update`

test('locked creations do not hold up another merchant whose lease has ended', async (t) => {
  const { ledger, turn, states } = await poller(t, async () => notFound)
  await ledger.db.run(creating, { merchantId: 'acme', count: 100 })
  await ledger.db.run(creating, { merchantId: 'bolt', count: 1 })
  const ofBolt = await ledger.db.transaction('test', async (tx) => {
    await tx.run(holdAcme, {})
    await turn()
    return (await states()).filter(([state]) => state !== 'creating')
  })
  assert.deepEqual(ofBolt, [['unknown', 'lease-ended']])
})

test('"not found" confirms absence only if the settings in force find a payin that must exist', async (t) => {
  let known: string | undefined
  const { ledger, create, processAll, states } = await poller(
    t,
    async (payinId) => (payinId === known ? { kind: 'known', report: report(control, 'pending') } : notFound),
    (payinId) => (controlled ? timeout : accepted(payinId)),
  )
  let controlled = false
  const control = await create('control')
  controlled = true
  await create('lost')
  for (let i = 0; i < 4; i++) await processAll()
  assert.deepEqual(await states(), [
    ['open', null],
    ['unknown', 'timeout'],
  ])
  known = control.payinId
  await ledger.db.run(upsertMerchant, {
    merchantId: 'acme',
    settingsHash: 'adopted meanwhile',
    feeEstimate: 0n,
  })
  for (let i = 0; i < 4; i++) await processAll()
  assert.deepEqual((await states())[1], ['unknown', 'timeout'])
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', ...ACCOUNT, feeEstimate: 0n })
  await mixUp(ledger.db)
  for (let i = 0; i < 4; i++) await processAll()
  assert.deepEqual((await states())[1], ['unknown', 'timeout'])
  await inOrderAgain(ledger.db)
  await processAll()
  assert.deepEqual((await states())[1], ['unknown', 'timeout'])
  await inOrderForLong(ledger.db)
  await processAll()
  await processAll()
  assert.deepEqual(await states(), [
    ['open', null],
    ['failed', 'proved-absent'],
  ])
})

const refusesPaid = sql<object>`alter table payins add constraint odd check (state <> 'paid')`

test('an answer that the database refuses is one anomaly, and payoutd asks about the payin again', async (t) => {
  const { ledger, create, processAll, asked } = await poller(t, async () => ({
    kind: 'known',
    report: report(payin, 'paid'),
  }))
  const payin = await create('order-7')
  await ledger.db.run(refusesPaid, {})
  await processAll()
  await processAll()
  assert.deepEqual([await anomaliesOf(ledger), asked.length], [['not-stored'], 2])
})

test('an unpaid payin expires, and after a recovery payoutd asks about it and finds it paid', async (t) => {
  let status: 'pending' | 'paid' = 'pending'
  const { ledger, collect, create, processAll, states, asked } = await poller(t, async () => ({
    kind: 'known',
    report: report(payin, status),
  }))
  const payin = await create('order-7')
  await ledger.db.run(expired, {})
  await processAll()
  assert.deepEqual([await states(), asked.length], [[['expired', null]], 1])
  const recovered = await recoverPayin(payin, '632611200001', collect)
  assert.equal(recovered.kind, 'answered')
  status = 'paid'
  await processAll()
  assert.deepEqual(await states(), [['paid', null]])
})

for (const how of ['failed', 'expired'] as const)
  test(`a payin that ${how === 'failed' ? how : 'has expired'} and is paid late is paid, though no callback comes`, async (t) => {
    let status: 'failed' | 'pending' | 'paid' = how === 'failed' ? how : 'pending'
    const { ledger, create, processAll, states } = await poller(t, async () => ({
      kind: 'known',
      report: report(payin, status),
    }))
    const payin = await create('order-7')
    await ledger.db.run(expired, {})
    await processAll()
    await processAll()
    assert.equal((await states())[0]?.[0], how)
    status = 'paid'
    await processAll()
    assert.deepEqual(await states(), [['paid', null]])
    assert.deepEqual(await ledger.db.run(brokenPayins, {}), [])
  })

test('a misfit report that calls the payin paid is one anomaly, however often it comes, and goes to a person, even after the payin’s time', async (t) => {
  const { ledger, create, processAll, states, asked } = await poller(t, async () => ({
    kind: 'known',
    report: { ...report(payin, 'paid'), amount: paise(49_900n) },
  }))
  const payin = await create('order-7')
  for (let i = 0; i < 3; i++) await processAll()
  assert.deepEqual([await states(), asked.length], [[['review', 'payment-named']], 3])
  await ledger.db.run(expired, {})
  for (let i = 0; i < 2; i++) await processAll()
  assert.deepEqual([await states(), asked.length], [[['review', 'payment-named']], 5])
  assert.deepEqual(await anomaliesOf(ledger), ['amount-mismatch'])
  assert.deepEqual(await ledger.db.run(brokenPayins, {}), [])
})

test('an unlisted status is one anomaly, however often it comes, and with a UTR it goes to a person and is no end', async (t) => {
  let utr: string | null = null
  const { ledger, create, processAll, states, asked } = await poller(t, async () => ({
    kind: 'known',
    report: { ...report(payin, 'unlisted'), unlisted: 'status 5', utr },
  }))
  const payin = await create('order-7')
  for (let i = 0; i < 3; i++) await processAll()
  assert.deepEqual([await states(), await anomaliesOf(ledger)], [[['open', null]], ['unlisted-status']])
  utr = '632611200001'
  await ledger.db.run(expired, {})
  for (let i = 0; i < 3; i++) await processAll()
  assert.deepEqual([await states(), asked.length], [[['review', 'payment-named']], 6])
  assert.deepEqual((await anomaliesOf(ledger)).sort(), ['payment-named', 'unlisted-status'])
  assert.deepEqual(await ledger.db.run(outboxOf, { topic: ledger.topics.payinResults }), [])
  assert.deepEqual(await ledger.db.run(brokenPayins, {}), [])
})

const dues = sql<object, { inHours: number }>`
  select extract(epoch from due_at - now())::float8 / 3600 as in_hours from payins where due_at is not null`
const byHours = sql<{ hours: number }>`
  update payins set due_at = now() - interval '1 minute', expires_at = now() - ${'hours'} * interval '1 hour'`

test('a payin that ended unpaid, and whose account left the settings, is put off ever longer, and for a week', async (t) => {
  const { ledger, create, processAll, queriers, querier, turn } = await poller(t, async () => ({
    kind: 'known',
    report: report(payin, 'failed'),
  }))
  const payin = await create('order-7')
  await processAll()
  queriers.set('acme', [{ ...querier, accountId: 'elsewhere' }])
  const after: number[] = []
  for (const hours of [2, 50, 169]) {
    await ledger.db.run(byHours, { hours })
    await turn()
    after.push(...(await ledger.db.run(dues, {})).map(({ inHours }) => Math.round(inHours)))
  }
  assert.deepEqual(after, [2, 50])
})

const toBolt = sql<object>`update payins set merchant_id = 'bolt'`

test('an ended payin of which each query shows another order is asked about ever more rarely, and for a week', async (t) => {
  const answers: PayinQueryAnswer[] = []
  const { ledger, create, processAll } = await poller(t, async () => answers.shift() ?? notFound)
  const payin = await create('order-7')
  const otherOrder = { ...report(payin, 'failed'), payOrderId: 'PO-OTHER' }
  answers.push({ kind: 'known', report: report(payin, 'failed') })
  await processAll()
  answers.push({ kind: 'known', report: otherOrder })
  await processAll()
  const dueIn = async () => (await ledger.db.run(hoursToGo, {}))[0]?.hours
  assert.equal(await dueIn(), 1)
  await ledger.db.run(longOver, {})
  answers.push({ kind: 'known', report: otherOrder })
  await processAll()
  assert.equal(await dueIn(), null)
})

test('a payin that was found with other settings is no presence check', async (t) => {
  const { create, processAll, states, ledger, queriers, querier, outcomeDeps } = await poller(
    t,
    async () => notFound,
    (payinId) => (queriers.has('bolt') ? timeout : accepted(payinId)),
  )
  const found = await create('order-7')
  await ledger.db.run(toBolt, {})
  const query = async (): Promise<PayinQueryAnswer> => ({ kind: 'known', report: report(found, 'pending') })
  queriers.set('bolt', [{ ...querier, settingsHash: 'another', query }])
  outcomeDeps.terms.set('bolt', outcomeDeps.terms.get('acme') as PayinTerms)
  await create('lost')
  for (let i = 0; i < 4; i++) await processAll()
  assert.deepEqual(await states(), [
    ['open', null],
    ['unknown', 'timeout'],
  ])
})

for (const [who, leave] of Object.entries({
  'whose account left the settings': ({ queriers, querier }) =>
    queriers.set('acme', [{ ...querier, accountId: 'elsewhere' }]),
  'of a merchant that left the settings': ({ queriers }) => queriers.delete('acme'),
} satisfies Record<string, (opened: Awaited<ReturnType<typeof poller>>) => void>)) {
  test(`nobody asks about a payin ${who}: it goes to a person when its time is over, and payoutd asks once it is back`, async (t) => {
    const opened = await poller(t, async () => notFound)
    const { ledger, create, processAll, states, asked, queriers, querier, collect } = opened
    await ledger.db.run(upsertMerchant, { merchantId: 'acme', ...ACCOUNT, feeEstimate: 0n })
    const first = await create('order-7')
    const collector = collect.collectors.get('acme')
    assert.ok(collector)
    collector.create = () => Promise.reject(new Error('the process is killed here'))
    await assert.rejects(create('order-8'))
    leave(opened)
    for (let i = 0; i < 3; i++) await processAll()
    assert.deepEqual(await states(), [
      ['open', null],
      ['unknown', 'lease-ended'],
    ])
    await ledger.db.run(overdue, {})
    for (let i = 0; i < 2; i++) await processAll()
    assert.deepEqual(await states(), [
      ['review', 'account-unknown'],
      ['review', 'account-unknown'],
    ])
    await processAll()
    assert.deepEqual(asked, [])
    queriers.set('acme', [
      { ...querier, query: async () => ({ kind: 'known', report: report(first, 'paid') }) },
    ])
    await processAll()
    assert.deepEqual((await states())[0], ['paid', null])
    assert.deepEqual(await ledger.db.run(brokenPayins, {}), [])
  })
}

const dueMs = sql<object, { state: string; due: string }>`select state, due_at::text as due from payins`
const hourAgo = sql<{ state: string }>`
  update payins set state = ${'state'}, due_at = now() - interval '1 minute', expires_at = now() - interval '59 minutes'`

test('a process without a merchant leaves its payins to one that has it: before their time is over, then, and in late looks', async (t) => {
  const opened = await poller(t, async () => ({ kind: 'known', report: report(payin, 'pending') }))
  const { ledger, create, turn, states, asked, queriers, querier } = opened
  const payin = await create('order-7')
  queriers.clear()
  queriers.set('bolt', [querier])
  const unmoved = async () => {
    const before = await ledger.db.run(dueMs, {})
    await turn()
    assert.deepEqual(await ledger.db.run(dueMs, {}), before)
  }
  await ledger.db.run(laterOn, {})
  await unmoved()
  for (const state of ['open', 'review', 'failed', 'expired']) {
    await ledger.db.run(hourAgo, { state })
    await unmoved()
  }
  await ledger.db.run(hourAgo, { state: 'open' })
  queriers.set('acme', [querier])
  await turn()
  assert.deepEqual([await states(), asked], [[['expired', null]], [payin.payinId]])
})

test('a lease that ends in a process without the merchant makes the process that has it ask at once', async (t) => {
  const opened = await poller(t, async () => ({ kind: 'known', report: report(payin, 'pending') }))
  const { ledger, create, turn, states, queriers, querier } = opened
  const payin = await create('order-7')
  await ledger.db.run(leasesEnded, {})
  queriers.clear()
  await turn()
  assert.deepEqual(await states(), [['unknown', 'lease-ended']])
  queriers.set('acme', [querier])
  await turn()
  assert.deepEqual(await states(), [['open', null]])
})

const markRefused = sql<{ payinId: string }>`
  update payins set traceparent = 'refused' where payin_id = ${'payinId'}`
const refusesMarked = sql<object>`
  alter table payins add constraint odd
  check (traceparent <> 'refused' or version = 1 and asked_at is null) not valid`
const ofBolt = sql<{ payinId: string }>`update payins set merchant_id = 'bolt' where payin_id = ${'payinId'}`
const leasesEnded = sql<object>`update payins set state = 'creating', version = 1, due_at = now()`

for (const [what, { prepare, moved }] of Object.entries({
  'whose creation’s lease has ended': {
    prepare: ({ ledger }) => ledger.db.run(leasesEnded, {}),
    moved: (payins) => payins.filter(({ state }) => state === 'unknown').length === 2,
  },
  'that are to be asked about': {
    prepare: ({ queriers, querier, outcomeDeps }) => {
      queriers.set('bolt', [querier])
      outcomeDeps.terms.set('bolt', outcomeDeps.terms.get('acme') as PayinTerms)
    },
    moved: (_, asked) => asked.length === 2,
  },
  'that nobody can be asked about': {
    prepare: async ({ ledger, queriers }) => {
      queriers.clear()
      await ledger.db.run(overdue, {})
    },
    moved: (payins) => payins.filter(({ state }) => state === 'review').length === 2,
  },
} satisfies Record<
  string,
  {
    prepare: (opened: Awaited<ReturnType<typeof poller>>) => unknown
    moved: (payins: StoredPayin[], asked: string[]) => boolean
  }
>)) {
  test(`of payins ${what}, one that the database refuses is an anomaly and holds up no other`, async (t) => {
    const opened = await poller(t, async () => ({ kind: 'retry', code: 'TOO_FAST', exchange: {} }))
    const { ledger, create, turn, asked } = opened
    const [refused, , another] = [await create('order-1'), await create('order-2'), await create('order-3')]
    await ledger.db.run(laterOn, {})
    await ledger.db.run(ofBolt, another)
    await prepare(opened)
    await ledger.db.run(markRefused, refused)
    await ledger.db.run(refusesMarked, {})
    await turn()
    const payins = await ledger.db.run(storedPayins, {})
    assert.ok(moved(payins, asked), `${JSON.stringify(payins)}, asked about: ${asked}`)
    assert.ok(!asked.includes(refused.payinId))
    assert.deepEqual(await anomaliesOf(ledger), ['not-stored'])
  })
}
