import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { accepted, anomaliesOf, brokenVersions } from '../../../test/ledger.ts'
import { outboxMessages } from '../../../test/outbox-messages.ts'
import { AMOUNT, besideSandbox, FEE } from '../../../test/reconcile.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import type { OrderStatus } from '../../domain/evidence.ts'
import type { BalanceAnswer, QueryAnswer } from '../../domain/gateway-answers.ts'
import { paise } from '../../domain/money.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { type AskDeps, askAll, findReconciliation, openReconciliation } from './reconcile.ts'
import { agrees, reportOf } from './report.ts'

const HOUR = 3_600_000
const change = sql<{ payoutId: string; state: string | null; utr: string | null; fee: bigint | null }>`
  update payouts
  set state = coalesce(${'state'}, state), utr = coalesce(${'utr'}, utr), fee = coalesce(${'fee'}::bigint, fee)
  where payout_id = ${'payoutId'}`
const backdate = sql<{ payoutId: string; minutes: number }>`
  update payouts set accepted_at = accepted_at - ${'minutes'}::int * interval '1 minute'
  where payout_id = ${'payoutId'}`
const paidEarlier = sql<{ minutes: number }>`
  with backdated as (
    update history set at = at - ${'minutes'}::int * interval '1 minute'
  )
  update payouts set updated_at = updated_at - ${'minutes'}::int * interval '1 minute',
    paid_at = paid_at - ${'minutes'}::int * interval '1 minute'`
const reverse = sql<{ payoutId: string }>`
  insert into reversals (merchant_id, payout_id, anomaly_id, amount, reversed_by, reason)
  select merchant_id, payout_id, gen_random_uuid(), amount, 'asha', 'it came back' from payouts
  where payout_id = ${'payoutId'}`
const states = sql<object, { payoutId: string; state: string }>`
  select payout_id, state from payouts order by payout_id`
const everything = sql<object, { rows: string }>`
  select (select json_agg(p order by payout_id)::text from payouts p)
    || (select count(*) from history) || ',' || (select count(*) from ${outboxMessages}) || ',' || (select count(*) from anomalies)
    as rows`

/** A reconciliation of the last hour, beside a sandbox. */
async function reconciling(t: TestContext) {
  const beside = await besideSandbox(t)
  const { db, client, accountId } = beside
  const to = systemClock.now() + HOUR
  const period = { merchantId: 'acme', accountId, from: to - 2 * HOUR, to }
  const deps: AskDeps = {
    db,
    query: (mchOrderNo) => client.query({ mchOrderNo }),
    settle: null,
    ratePerSecond: 1_000,
    clock: systemClock,
    signal: new AbortController().signal,
    onProgress: () => undefined,
  }
  const open = (at: Partial<typeof period> = {}) =>
    openReconciliation({ ...period, ...at }, { db, balance: () => client.balance() })
  return {
    ...beside,
    deps,
    open,
    async reconcile(overrides: Partial<AskDeps> = {}, at: Partial<typeof period> = {}) {
      const run = await open(at)
      const asked = await askAll(run, { ...deps, ...overrides })
      return { ...asked, report: await reportOf(asked.run, null, db) }
    },
  }
}

const unanswered: QueryAnswer = { kind: 'unknown', reason: 'timeout', exchange: {} }

test('if both sides agree, the run asks about every payout of the period that was sent, and each agrees', async (t) => {
  const { pay, db, reconcile } = await reconciling(t)
  await pay('p1', 'p2', 'p3', 'old')
  await db.run(backdate, { payoutId: 'old', minutes: 300 })
  const { report, ending } = await reconcile()
  assert.equal(ending, 'all-asked')
  assert.deepEqual([report.listed, report.asked, report.differing], [3, 3, []])
  const { paidHere, amountHere, feesHere, paidThere, amountThere, feesThere } = report.totals
  assert.deepEqual([paidHere, amountHere, feesHere], [3, 3n * AMOUNT, 3n * FEE])
  assert.deepEqual([paidThere, amountThere, feesThere], [3, 3n * AMOUNT, 3n * FEE])
  assert.ok(agrees(report))
})

test('a payout agrees with a statement that has its UTR in other letter case', async (t) => {
  const { pay, db, reconcile } = await reconciling(t)
  await pay('p1')
  await db.run(change, { payoutId: 'p1', utr: 'hdfcn1', state: null, fee: null })
  const { run } = await reconcile()
  const line = { row: 2, utr: 'HDFCN1', amount: paise(AMOUNT), mchOrderNo: null }
  assert.deepEqual((await reportOf(run, [line], db)).statement?.differences, [])
})

const DAY = 24 * HOUR
const datePayout = sql<{ payoutId: string; acceptedAt: number; sentAt: number; paidAt: number }>`
  update payouts set accepted_at = to_timestamp(${'acceptedAt'}::float8 / 1000),
    sent_at = to_timestamp(${'sentAt'}::float8 / 1000), paid_at = to_timestamp(${'paidAt'}::float8 / 1000)
  where payout_id = ${'payoutId'}`

const paidAtFormer = sql<{ payoutId: string }>`
  update payouts set account_id = 'former' where payout_id = ${'payoutId'}`

const forgetLongAgo = sql<{ minutes: number }>`
  with backdated as (
    update history set at = at - ${'minutes'}::int * interval '1 minute' where payout_id = 'long-ago'
  )
  update payouts set paid_at = null where payout_id = 'long-ago'`

test('a statement is compared with what was paid in its period, whenever that was accepted', async (t) => {
  const { pay, db, open } = await reconciling(t)
  const [from, to] = [systemClock.now() - 9 * DAY, systemClock.now() - 3 * DAY]
  const dates: [payoutId: string, acceptedAt: number, sentAt: number, paidAt: number][] = [
    ['accepted-before', from - 2 * DAY, from + 2 * DAY, from + 2 * DAY],
    ['paid-before', from - HOUR, from - HOUR, from - 1],
    ['paid-first', from - HOUR, from, from],
    ['paid-last', to - DAY, to - HOUR, to - 1],
    ['paid-next', to - 2 * DAY, to - HOUR, to],
    ['sent-before', from - HOUR, from - HOUR, from + 2 * DAY],
    ['stated', from + DAY, from + DAY, from + DAY],
  ]
  await pay(...dates.map(([payoutId]) => payoutId))
  for (const [payoutId, acceptedAt, sentAt, paidAt] of dates)
    await db.run(datePayout, { payoutId, acceptedAt, sentAt, paidAt })
  await db.run(change, { payoutId: 'stated', utr: 'STATED', state: null, fee: null })
  const run = await open()
  const line = { row: 2, utr: 'STATED', amount: paise(AMOUNT), mchOrderNo: null }
  const missingFrom = async (periodFrom: number, periodTo: number) => {
    const { statement } = await reportOf({ ...run, periodFrom, periodTo }, [line], db)
    return statement?.differences.map(({ kind, payoutId, otherStatement }) => [
      kind,
      payoutId,
      otherStatement,
    ])
  }
  assert.deepEqual(await missingFrom(from, to), [
    ['not-in-statement', 'accepted-before', null],
    ['not-in-statement', 'paid-first', 'neighbouring'],
    ['not-in-statement', 'paid-last', 'neighbouring'],
    ['not-in-statement', 'sent-before', 'neighbouring'],
  ])
  assert.deepEqual(await missingFrom(from - 9 * DAY, from), [
    ['not-in-statement', 'paid-before', 'neighbouring'],
  ])
  assert.deepEqual(await missingFrom(to, to + 9 * DAY), [
    ['paid-in-other-period', 'stated', undefined],
    ['not-in-statement', 'paid-next', 'neighbouring'],
  ])
  await db.run(paidAtFormer, { payoutId: 'paid-next' })
  assert.deepEqual((await missingFrom(to, to + 9 * DAY))?.at(-1), [
    'not-in-statement',
    'paid-next',
    'other-account',
  ])
})

test('a line without a UTR for an order that was paid 40 days before the period differs, also where only the history has the moment', async (t) => {
  const { pay, db, open, orderNo } = await reconciling(t)
  await pay('long-ago', 'failed', 'now')
  await db.run(change, { payoutId: 'failed', state: 'failed', utr: null, fee: null })
  const run = await open()
  const lines = ['long-ago', 'failed', 'now'].map((payoutId, n) => ({
    ...{ row: n + 2, utr: null, amount: paise(AMOUNT), mchOrderNo: orderNo(payoutId) },
  }))
  const found = async () =>
    (await reportOf(run, lines, db)).statement?.differences.map(({ kind, payoutId }) => [kind, payoutId])
  assert.deepEqual(await found(), [['not-paid-here', 'failed']])
  await db.run(datePayout, {
    ...{ payoutId: 'long-ago', acceptedAt: run.periodFrom - 40 * DAY, sentAt: run.periodFrom - 40 * DAY },
    paidAt: run.periodFrom - 40 * DAY,
  })
  const expected = [
    ['not-paid-here', 'failed'],
    ['paid-in-other-period', 'long-ago'],
  ]
  assert.deepEqual(await found(), expected)
  await db.run(forgetLongAgo, { minutes: 40 * 24 * 60 })
  assert.deepEqual(await found(), expected)
})

test('the run lists what differs, the oldest first, and changes no payout', async (t) => {
  const { pay, send, ended, orderNo, db, reconcile } = await reconciling(t)
  await pay('utr', 'fee', 'failed', 'agrees')
  await send('unheard')
  await ended(orderNo('unheard'))
  await db.run(change, { payoutId: 'utr', utr: 'ANOTHER', state: null, fee: null })
  await db.run(change, { payoutId: 'fee', fee: 1n, state: null, utr: null })
  await db.run(change, { payoutId: 'failed', state: 'failed', utr: null, fee: null })
  await db.run(backdate, { payoutId: 'utr', minutes: 20 })
  await db.run(backdate, { payoutId: 'failed', minutes: 10 })
  const before = await db.run(everything, {})
  const { report } = await reconcile()
  assert.deepEqual(
    report.differing.map(({ payoutId, differences }) => [payoutId, ...differences.map(({ kind }) => kind)]),
    [
      ['utr', 'utr'],
      ['failed', 'paid-there-only'],
      ['fee', 'fee'],
      ['unheard', 'not-heard-here'],
    ],
  )
  assert.ok(!agrees(report))
  assert.deepEqual(await db.run(everything, {}), before)
})

test('--settle applies what a run found like any other evidence, and a contradiction becomes an anomaly', async (t) => {
  const { pay, send, ended, orderNo, db, ledger, deps, settle, reconcile } = await reconciling(t)
  await pay('failed')
  await send('unheard')
  await ended(orderNo('unheard'))
  await db.run(change, { payoutId: 'failed', state: 'failed', utr: null, fee: null })
  const { run } = await reconcile()
  assert.ok(run.finishedAt !== null)
  assert.deepEqual(await findReconciliation(db, run.reconciliationId), run)
  const again = await askAll(run, { ...deps, settle })
  assert.equal(again.ending, 'all-asked')
  const report = await reportOf(again.run, null, db)
  assert.deepEqual(await db.run(states, {}), [
    { payoutId: 'failed', state: 'failed' },
    { payoutId: 'unheard', state: 'paid' },
  ])
  assert.deepEqual(await anomaliesOf(ledger), ['contradiction'])
  assert.deepEqual(await brokenVersions(ledger), [])
  assert.equal(report.totals.settled, 1)
  assert.deepEqual(
    report.differing.map(({ payoutId }) => payoutId),
    ['failed'],
  )
})

test('--settle dates evidence to the moment of the query, which is after the payout was sent', async (t) => {
  const { send, ended, orderNo, reconcile } = await reconciling(t)
  await send('p1')
  await ended(orderNo('p1'))
  const before = systemClock.now()
  const asked: number[] = []
  await reconcile({
    settle: async (_order, _answer, _accountId, askedAt) => {
      asked.push(askedAt)
    },
  })
  const [askedAt, ...others] = asked
  assert.ok(askedAt !== undefined && before - 100 < askedAt && askedAt < systemClock.now() + 100)
  assert.deepEqual(others, [])
})

test('a run with --settle finishes only when everything is settled, and also goes on without --settle', async (t) => {
  const { send, ended, orderNo, db, deps, settle, reconcile } = await reconciling(t)
  await send('p1')
  await ended(orderNo('p1'))
  const { run } = await reconcile()
  assert.ok(run.finishedAt !== null)
  const stopped = await askAll(run, { ...deps, settle, signal: AbortSignal.abort() })
  assert.equal(stopped.ending, 'interrupted')
  const found = await findReconciliation(db, run.reconciliationId)
  assert.ok(found)
  const { ending, run: again } = await askAll(found, deps)
  assert.deepEqual([ending, again.finishedAt !== null], ['all-asked', true])
  assert.deepEqual((await reportOf(again, null, db)).asked, 1)
})

const messageIds = sql<object, { eventId: string }>`select event_id from ${outboxMessages}`
const forgetUtr = sql<object>`update payouts set utr = null, fee = null`

test('--settle completes a UTR and a fee that a callback left out, and publishes them once', async (t) => {
  const { pay, db, deps, settle, reconcile } = await reconciling(t)
  await pay('p1')
  await db.run(forgetUtr, {})
  const { run, report } = await reconcile()
  assert.deepEqual(
    report.differing.flatMap(({ differences }) => differences.map(({ kind }) => kind)),
    ['fee', 'utr'],
  )
  const messages = async () => (await db.run(messageIds, {})).length
  const before = await messages()
  const again = await reportOf((await askAll(run, { ...deps, settle })).run, null, db)
  assert.deepEqual([again.differing, again.totals.settled, again.totals.feesHere], [[], 1, FEE])
  assert.equal(await messages(), before)
})

test('a difference that a callback settles before --settle reaches it is reported as settled', async (t) => {
  const { send, ended, orderNo, db, deps, settle, reconcile } = await reconciling(t)
  await send('p1', 'p2')
  const [first, second] = [await ended(orderNo('p1')), await ended(orderNo('p2'))]
  const { run, report } = await reconcile()
  assert.deepEqual([report.differing.length, report.totals.settled], [2, 0])
  await settle(orderNo('p1'), first)
  await settle(orderNo('p2'), second)
  await askAll(run, { ...deps, settle })
  const { differing, totals } = await reportOf(run, null, db)
  assert.deepEqual([differing, totals.settled], [[], 2])
})

test('the run counts payouts that are open on both sides, and payouts that came back', async (t) => {
  const { pay, send, deps, orderNo, db, reconcile } = await reconciling(t)
  await pay('back', 'paid')
  await db.run(reverse, { payoutId: 'back' })
  await send('open', 'refused')
  await db.run(change, { payoutId: 'open', state: 'processing', utr: null, fee: null })
  await db.run(change, { payoutId: 'refused', state: 'failed', utr: null, fee: null })
  const saysNow = new Map<string, OrderStatus>([
    [orderNo('back'), 'failed'],
    [orderNo('open'), 'processing'],
  ])
  const query = async (mchOrderNo: string): Promise<QueryAnswer> => {
    if (mchOrderNo === orderNo('refused')) return { kind: 'not-found', exchange: {} }
    const answer = await deps.query(mchOrderNo, null)
    assert.ok(answer?.kind === 'found')
    const status = saysNow.get(mchOrderNo) ?? answer.report.status
    return { kind: 'found', report: { ...answer.report, status } }
  }
  const { report } = await reconcile({ query })
  assert.deepEqual(report.differing, [])
  const { paidHere, paidThere, reversed, amountReversed, open } = report.totals
  assert.deepEqual([paidHere, paidThere, reversed, amountReversed, open], [2, 1, 1, AMOUNT, 1])
})

test('an interrupted run resumes where it stopped, and asks about nothing twice', async (t) => {
  const { send, deps, reconcile } = await reconciling(t)
  const payouts = Array.from({ length: 20 }, (_, i) => `p${String(i).padStart(2, '0')}`)
  await send(...payouts)
  const asked: string[] = []
  const query = (mchOrderNo: string) => {
    asked.push(mchOrderNo)
    return deps.query(mchOrderNo, null)
  }
  const abort = new AbortController()
  const first = await reconcile({
    query,
    signal: abort.signal,
    onProgress: (done) => done === 5 && abort.abort(),
  })
  assert.equal(first.ending, 'interrupted')
  assert.ok(first.report.asked >= 5 && first.report.asked < 20, `${first.report.asked} were asked about`)
  assert.ok(!agrees(first.report))

  const second = await reconcile({ query })
  assert.equal(second.run.reconciliationId, first.run.reconciliationId)
  assert.deepEqual([second.ending, second.report.asked, asked.length], ['all-asked', 20, 20])
  assert.equal(new Set(asked).size, 20)
  const third = await reconcile({ query })
  assert.notEqual(third.run.reconciliationId, first.run.reconciliationId)
})

test('the run asks again about a payout that the gateway does not answer about, and does not finish without it', async (t) => {
  const { pay, deps, orderNo, reconcile } = await reconciling(t)
  await pay('p1', 'p2')
  const questions: string[] = []
  const query = async (mchOrderNo: string) => {
    const isFirst = !questions.includes(mchOrderNo)
    questions.push(mchOrderNo)
    return isFirst || mchOrderNo === orderNo('p2') ? unanswered : deps.query(mchOrderNo, null)
  }
  const { report, ending, inVain } = await reconcile({ query })
  assert.deepEqual([ending, inVain, report.listed, report.asked], ['all-asked', 1, 2, 1])
  assert.equal(questions.filter((each) => each === orderNo('p2')).length, 3)
  assert.ok(!agrees(report))
  const again = await reconcile()
  assert.equal(again.run.reconciliationId, report.run.reconciliationId)
  assert.ok(agrees(again.report))
})

test('two that ask at once, each without one answer at first, finish the run', async (t) => {
  const { pay, deps, orderNo, open, reconcile } = await reconciling(t)
  await pay('p1', 'p2', 'p3', 'p4')
  const { reconciliationId } = await open()
  const withoutFirstAnswerTo = (payoutId: string) => {
    let isFirst = true
    return async (mchOrderNo: string) => {
      if (mchOrderNo === orderNo('p4')) await delay(300)
      if (!isFirst || mchOrderNo !== orderNo(payoutId)) return deps.query(mchOrderNo, null)
      isFirst = false
      return unanswered
    }
  }
  const both = ['p1', 'p2'].map((payoutId) => reconcile({ query: withoutFirstAnswerTo(payoutId) }))
  for (const { run } of await Promise.all(both)) assert.equal(run.reconciliationId, reconciliationId)
  assert.notEqual((await reconcile()).run.reconciliationId, reconciliationId)
})

test('the run stops asking a gateway that answers nothing', async (t) => {
  const { ledger, config, db, reconcile } = await reconciling(t)
  await accepted(
    ledger,
    config,
    Array.from({ length: 40 }, (_, i) => command(`p${i}`)),
  )
  await db.run(sql<object>`update payouts set attempt = 1`, {})
  let questions = 0
  const { ending, inVain } = await reconcile({
    query: async () => {
      questions++
      return unanswered
    },
  })
  assert.equal(ending, 'silent')
  assert.ok(questions < 40, `it was asked ${questions} times`)
  assert.equal(inVain, questions)
})

test('payouts of an account that the settings lack, however many, do not stop the run; the report names the account', async (t) => {
  const { pay, db, deps, reconcile } = await reconciling(t)
  await pay('p1', 'p2')
  const ids = Array.from({ length: 40 }, (_, i) => `before-${String(i).padStart(2, '0')}`)
  await pay(...ids)
  await db.run(
    sql<{ ids: string[] }>`update payouts set account_id = 'gone' where payout_id = any(${'ids'})`,
    { ids },
  )
  const { report, ending, inVain, missing } = await reconcile({
    query: async (orderNo, accountId) => (accountId === 'gone' ? null : deps.query(orderNo, accountId)),
  })
  assert.deepEqual([ending, inVain, missing, report.listed, report.asked], ['all-asked', 40, ['gone'], 42, 2])
})

test('a payout that is settled while the run asks about it does not differ', async (t) => {
  const { send, ended, orderNo, deps, settle, reconcile } = await reconciling(t)
  await send('p1')
  const answer = await ended(orderNo('p1'))
  let first = true
  const query = async (mchOrderNo: string): Promise<QueryAnswer | null> => {
    if (!first) return deps.query(mchOrderNo, null)
    first = false
    await settle(mchOrderNo, answer)
    return { kind: 'found', report: { ...answer.report, status: 'processing' } }
  }
  const { report } = await reconcile({ query })
  assert.deepEqual(report.differing, [])
})

test('the second run on reports how the balance moved; what no payout explains is missing', async (t) => {
  const { pay, ended, client, db, reconcile } = await reconciling(t)
  assert.deepEqual((await reconcile()).report.balance, { kind: 'unknown' })
  await db.run(sql<object>`update reconciliations set started_at = started_at - interval '2 hours'`, {})
  await pay('p1', 'p2')
  const { balance } = (await reconcile()).report
  assert.ok('paid' in balance)
  assert.deepEqual(
    [balance.kind, balance.paid, balance.from.balance - balance.to.balance],
    ['explained', 2n * (AMOUNT + FEE), 2n * (AMOUNT + FEE)],
  )

  // Past the ledger, so that payoutd does not know of it.
  await client.apply(
    { ...command('x', { amount: paise(AMOUNT) }), mchOrderNo: 'X1', notifyUrl: 'http://127.0.0.1:9/never' },
    { mayStillSend: () => true },
  )
  await ended('X1')
  await db.run(sql<object>`update reconciliations set started_at = started_at - interval '10 minutes'`, {})
  await db.run(paidEarlier, { minutes: 20 })
  const { report } = await reconcile()
  assert.ok(report.balance.kind === 'missing' && report.balance.rest === AMOUNT + FEE)
  assert.ok(!agrees(report))
})

test('what failed less than a day before a balance may not be back in it yet', async (t) => {
  const { pay, db, reconcile } = await reconciling(t)
  await reconcile()
  await db.run(sql<object>`update reconciliations set started_at = started_at - interval '2 hours'`, {})
  await pay('p1')
  // As if the gateway had called it failed, and not given the money back yet.
  await db.run(sql<object>`update payouts set state = 'failed', paid_at = null`, {})
  const { balance } = (await reconcile()).report
  assert.equal(balance.kind, 'in-flight')
  await db.run(sql<object>`update payouts set updated_at = updated_at - interval '2 days'`, {})
  assert.equal((await reconcile()).report.balance.kind, 'missing')
})

const paidElsewhere = sql<object>`update payouts set account_id = 'former' where payout_id = 'elsewhere'`

test('the balance of another account explains nothing, nor does what was paid from that account', async (t) => {
  const { pay, db, reconcile } = await reconciling(t)
  await reconcile({}, { accountId: 'former' })
  await db.run(sql<object>`update reconciliations set started_at = started_at - interval '2 hours'`, {})
  assert.deepEqual((await reconcile()).report.balance, { kind: 'unknown' })
  await db.run(
    sql<object>`update reconciliations set started_at = started_at - interval '2 hours' where account_id <> 'former'`,
    {},
  )
  await pay('p1')
  await pay('elsewhere')
  await db.run(paidElsewhere, {})
  const { balance } = (await reconcile()).report
  // The sandbox has only one balance, and deducted that payment from it.
  assert.ok('paid' in balance)
  assert.deepEqual([balance.paid, balance.gap], [AMOUNT + FEE, AMOUNT + FEE])
})

const runsEarlier = sql<{ minutes: number }>`
  update reconciliations set started_at = started_at - ${'minutes'}::int * interval '1 minute',
    balance_at = balance_at - ${'minutes'}::int * interval '1 minute'`
const reported = sql<{ payoutId: string; minutes: number }>`
  insert into anomalies (merchant_id, anomaly_id, at, payout_id, kind, detail, source)
  select merchant_id, anomaly_id, now() - ${'minutes'}::int * interval '1 minute', payout_id, 'contradiction', '', 'CALLBACK'
  from reversals where payout_id = ${'payoutId'}`
const atAccount = sql<{ accountId: string }>`update payouts set account_id = ${'accountId'}`

/** The first balance is 72 hours old. */
for (const [name, paidHours, reportedHours, moved, account, finds] of [
  ['between two balances is explained', 60, 30, -FEE, null, ['explained', AMOUNT, 0n, 0n, 0n]],
  [
    'does not hide that as much left besides',
    60,
    30,
    -FEE - AMOUNT,
    null,
    ['missing', AMOUNT, 0n, 0n, AMOUNT],
  ],
  ['of an earlier payment is explained', 90, 30, AMOUNT, null, ['explained', AMOUNT, AMOUNT, 0n, 0n]],
  ['before payoutd learned of it is not missing', 90, 30, 0n, null, ['in-flight', AMOUNT, AMOUNT, 0n, 0n]],
  [
    'after the second balance is not missing',
    60,
    23,
    -FEE - AMOUNT,
    null,
    ['in-flight', AMOUNT, 0n, AMOUNT, 0n],
  ],
  ['before or after counts once', 90, 23, -AMOUNT, null, ['missing', AMOUNT, AMOUNT, 0n, AMOUNT]],
  ['counts by its report, whenever it was confirmed', 90, 80, 0n, null, ['explained', 0n, 0n, 0n, 0n]],
  ['to another account explains nothing', 60, 30, AMOUNT, 'other', ['more', 0n, 0n, 0n, AMOUNT]],
] as const)
  test(`money that came back ${name}`, async (t) => {
    const { pay, db, deps, accountId } = await reconciling(t)
    const now = systemClock.now()
    const runWith = async (amount: bigint) => {
      const balance = async () => ({ kind: 'balance', amount: paise(amount) }) as BalanceAnswer
      const period = { merchantId: 'acme', accountId, from: now - 72 * HOUR, to: now + HOUR }
      return (await askAll(await openReconciliation(period, { db, balance }), deps)).run
    }
    await runWith(1_000_000n)
    await db.run(runsEarlier, { minutes: 72 * 60 })
    await pay('p1')
    await db.run(paidEarlier, { minutes: paidHours * 60 })
    await db.run(reverse, { payoutId: 'p1' })
    await db.run(reported, { payoutId: 'p1', minutes: reportedHours * 60 })
    if (account !== null) await db.run(atAccount, { accountId: account })
    const { balance } = await reportOf(await runWith(1_000_000n + moved), null, db)
    assert.ok('returned' in balance)
    const { kind, returned, rest } = balance
    assert.deepEqual([kind, returned.amount, returned.early, returned.late, rest], finds)
  })

const forgetWhen = sql<object>`update payouts set paid_at = null`
const forgetHistory = sql<object>`delete from history`

for (const [kept, forget] of [
  ['beside it', []],
  ['in the history alone', [forgetWhen]],
] as const)
  test(`a UTR and a fee that are reported later explain no money of that period, where the moment of payment is kept ${kept}`, async (t) => {
    const { send, settle, orderNo, ended, client, db, reconcile } = await reconciling(t)
    await send('p1')
    const whole = await ended(orderNo('p1'))
    await settle(orderNo('p1'), { ...whole, report: { ...whole.report, utr: null } })
    await db.run(paidEarlier, { minutes: 180 })
    for (const each of forget) await db.run(each, {})
    await reconcile()
    await db.run(runsEarlier, { minutes: 120 })
    // Past the ledger, and as large as the payment that is completed now.
    await client.apply(
      { ...command('x', { amount: paise(AMOUNT) }), mchOrderNo: 'X1', notifyUrl: 'http://127.0.0.1:9/never' },
      { mayStillSend: () => true },
    )
    await ended('X1')
    await settle(orderNo('p1'), whole)
    const { balance } = (await reconcile()).report
    assert.ok('paid' in balance)
    assert.deepEqual([balance.kind, balance.paid, balance.gap], ['missing', 0n, AMOUNT + FEE])
  })

test('a payout that was paid before payoutd kept the moment, and whose history is gone, counts by its last update', async (t) => {
  const { pay, db, reconcile } = await reconciling(t)
  await reconcile()
  await db.run(runsEarlier, { minutes: 120 })
  await pay('p1')
  for (const each of [forgetWhen, forgetHistory]) await db.run(each, {})
  const { balance } = (await reconcile()).report
  assert.ok('paid' in balance)
  assert.deepEqual([balance.kind, balance.paid], ['explained', AMOUNT + FEE])
})

test("the totals of a run use the ledger's state at each answer, whenever the report is read", async (t) => {
  const { pay, send, settle, ended, orderNo, client, db, reconcile } = await reconciling(t)
  await pay('p1')
  await send('open')
  const query = async (mchOrderNo: string): Promise<QueryAnswer> => {
    const answer = await client.query({ mchOrderNo })
    return answer.kind === 'found' && mchOrderNo === orderNo('open')
      ? { ...answer, report: { ...answer.report, status: 'processing' } }
      : answer
  }
  await db.run(change, { payoutId: 'open', state: 'processing', utr: null, fee: null })
  const { run, report } = await reconcile({ query })
  await settle(orderNo('open'), await ended(orderNo('open')))
  const { totals, differing } = await reportOf(run, null, db)
  assert.deepEqual([totals.paidHere, totals.paidThere, totals.open, differing], [1, 1, 1, []])
  assert.deepEqual(totals, report.totals)
})

for (const [when, endsIn] of [
  ['the first', 0],
  ['the last', 1],
] as const) {
  for (const isTakenOff of [true, false]) {
    test(`a payout that ends during the query for ${when} balance, ${isTakenOff ? 'and is' : 'but is not'} deducted from it, is not missing`, async (t) => {
      const { pay, send, settle, ended, orderNo, client, db, deps, accountId } = await reconciling(t)
      await pay('p1')
      await send('p2')
      const now = systemClock.now()
      const runAt = async (from: number, to: number, nth: number) => {
        const balance = async () => {
          if (nth === endsIn) await settle(orderNo('p2'), await ended(orderNo('p2')))
          const isOff = nth > endsIn || (nth === endsIn && isTakenOff)
          const amount = paise(10_000_000n - (isOff ? AMOUNT + FEE : 0n))
          return { ...(await client.balance()), kind: 'balance', amount } as BalanceAnswer
        }
        const period = { merchantId: 'acme', accountId, from, to }
        return (await askAll(await openReconciliation(period, { db, balance }), deps)).run
      }
      const first = await runAt(now - HOUR, now - HOUR / 2, 0)
      const { balance } = await reportOf(await runAt(first.startedAt, now + HOUR, 1), null, db)
      assert.ok(balance.kind === 'explained' || balance.kind === 'in-flight', balance.kind)
    })
  }
}
