import assert from 'node:assert/strict'
import { createHash, randomInt } from 'node:crypto'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import {
  ACCOUNT,
  accepted,
  anomaliesOf,
  attemptOf,
  brokenVersions,
  payoutsOf,
  readerOf,
  type StoredPayout,
  setBalance,
  testLedger,
  upsertMerchant,
} from '../../../test/ledger.ts'
import { inOrderAgain, inOrderForLong, mixUp, mixUpOnce } from '../../../test/mixed-answers.ts'
import { outboxMessages } from '../../../test/outbox-messages.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { DECISIONS } from '../../domain/decisions.ts'
import type { QueryAnswer } from '../../domain/gateway-answers.ts'
import { paise } from '../../domain/money.ts'
import { QUERY_POLICY } from '../../domain/payout/payout.fixture.ts'
import { parsePayoutCallback } from '../../gateway/callbacks/callback.ts'
import { PresenceCheck } from '../../gateway/presence-check.ts'
import { KeptCallbacks } from '../../ledger/callbacks/kept-callbacks.ts'
import { BEYOND_UNMOVED } from '../../ledger/evidence/repeats.ts'
import { recoveringMerchants } from '../../ledger/sql/fenced-merchants.ts'
import { reversePayout } from '../../operators/reversal.ts'
import { createHttpServer, type HttpServer } from '../../platform/http.ts'
import { silentLogger } from '../../platform/log.ts'
import { Metrics } from '../../platform/metrics.ts'
import { connectDatabase, sql } from '../../platform/postgres/postgres.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { eventually } from '../../platform/running/eventually.fixture.ts'
import { holdsOf } from '../../queries/sql/payouts/holds.ts'
import { claim } from '../dispatch/claim.ts'
import { WARM } from '../dispatch/merchant-gate.ts'
import { recordAnswers } from '../dispatch/record-answers.ts'
import { callbackPath } from './callback-endpoint.ts'
import {
  applyEvidenceBatch,
  type OutcomesDeps,
  type PayoutEvidence,
  payoutCallbackEndpoint,
} from './outcomes.ts'
import { payoutPoller } from './payout-poller.ts'

const POLICY = { ...QUERY_POLICY, graceMs: 5_000, confirmations: 2, duplicatesRefused: true }
const LIMITS = { maxInFlight: 1_000, ratePerSecond: null }
const exchange = {}
/** The outcome of an apply that the gateway accepted. */
const ACCEPTED = {
  answer: { kind: 'accepted', agentpayOrderId: 'AP1', fee: null, status: 'processing', exchange },
  tell: false,
} as const
const fullSpeed = sql<{ warmUp: number }>`update merchants set warm_up = ${'warmUp'}`
/** Moves time on: everything that waits is due, and everything unknown has been so for another minute. */
const laterOn = sql<object>`
  update payouts set due_at = now(), unknown_since = unknown_since - interval '1 minute' where due_at is not null`

/** Everything that waits is due, and everything unknown has been so for an hour; answers were last mixed up a minute ago. */
const mixedUpMinuteAgo = sql<object>`
  with due as (update payouts set due_at = now() where due_at is not null),
    unknown as (update payouts set unknown_since = now() - interval '1 hour' where state = 'unknown')
  update mixed_answers set mixed_until = date_trunc('second', now()) - interval '59.999999 seconds'`
const due = sql<object>`update payouts set due_at = now() where due_at is not null`

/** The tables that evidence may make grow. */
const tableSizes = sql<object, { history: number; anomalies: number; outbox: number }>`
  select (select count(*)::int from history) as history, (select count(*)::int from anomalies) as anomalies,
    (select count(*)::int from ${outboxMessages}) as outbox`
const timesHeard = sql<object, { what: string; times: number }>`
  select kind as what, times from anomalies
  union all select to_state, times from history where version is null and exchange is not null
  order by what`
const keptAndSaid = sql<object, { kept: number; said: number; note: string | null }>`
  select count(*)::int as kept, sum(times)::int as said,
    case when exchange->'response'->>'n' = '201' then 'completes' else exchange->>'note' end as note
  from history where version is null and exchange is not null group by 3 order by 1 desc, 2 desc`
const questions = sql<object, { state: string; queries: number; waitMs: number }>`
  select state, queries, (extract(epoch from due_at - updated_at) * 1000)::float8 as wait_ms from payouts`
/** payoutd asks about everything in an hour, and last asked `askedSecondsAgo`. */
const waitLong = sql<{ askedSecondsAgo: number }>`
  update payouts set due_at = now() + interval '1 hour', asked_at = now() - ${'askedSecondsAgo'} * interval '1 second'`
const refusedBesideReview = sql<{ review: string }>`
  update payouts set state = case when payout_id = ${'review'} then 'review' else 'unknown' end,
    reason = case when payout_id = ${'review'} then 'expired' else 'refused' end,
    refusal = case when payout_id <> ${'review'} then 'closed' end, unpaid_codes = case when payout_id <> ${'review'} then 'LIMIT' end,
    due_at = case when payout_id <> ${'review'} then now() end, unknown_since = now()`
const waitsForAnswer = sql<object>`
  update payouts set state = 'queued', reason = 'later', ready = false, due_at = deadline, asked_at = now() - interval '1 minute'`
const hasUtr = sql<{ payoutId: string; utr: string }>`
  update payouts set utr = ${'utr'} where payout_id = ${'payoutId'}`
const oddUtrs = sql<object, { payoutId: string; times: number; detail: string }>`
  select payout_id, times, detail from anomalies where kind = 'utr-of-two' order by payout_id`
const contradictions = sql<
  object,
  { detail: string }
>`select detail from anomalies where kind = 'contradiction' order by at`
const toBeQueried = sql<object, { orderNo: string }>`select order_no from lost_callbacks`
const locks = sql<{ payoutId: string }>`select from payouts where payout_id = ${'payoutId'} for update`
const waiters = sql<object, object>`
  select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
const refusesPaid = sql<object>`alter table payouts add constraint odd check (state <> 'paid')`
const anomalyMessages = sql<object, { eventId: string }>`
  select event_id from ${outboxMessages} where type = 'in.payoutd.PayoutAnomaly'`

const THERE = { accountId: 'there', settingsHash: 'hh' }
const addSettings = sql<{ accountId: string; settingsHash: string }>`
  insert into gateway_settings (merchant_id, settings_hash, account_id, base_url, mch_id, key_fingerprint, dialect_name)
  values ('acme', ${'settingsHash'}, ${'accountId'}, '', '', '', '')`
const addAttempt = sql<{ settingsHash: string }>`
  insert into attempts (merchant_id, payout_id, attempt, order_no, owner, settings_hash, lease_until)
  select merchant_id, payout_id, 0, order_no, owner, ${'settingsHash'}, lease_until from attempts`
const doubts = sql<object, object>`select state, doubted, order_besides, account_id from payouts`

/** What an account answers about a payout. */
function from(account: typeof THERE, { orderNo }: StoredPayout, outcomeDeps: OutcomesDeps) {
  const asked = { ...ACCOUNT, ...account, queryPolicy: POLICY, askedAt: 0, presence: true }
  return {
    hear: (answer: QueryAnswer) =>
      applyEvidenceBatch(
        [{ merchantId: 'acme', mchOrderNo: orderNo, source: 'QUERY', answer, ...asked }],
        outcomeDeps,
      ),
    report: (status: 'success' | 'failed') => ({
      ...{ mchOrderNo: orderNo, agentpayOrderId: 'AP1', status, amount: paise(10_000n) },
      ...{ fee: null, utr: null, errorMessage: null, exchange: { note: `elsewhere: ${status}` } },
    }),
  }
}

/** `count` payouts of ₹100, claimed by a process that has no answers yet. */
async function onTheWire(t: TestContext, count: number) {
  const { ledger, config } = await testLedger(t)
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  await setBalance(ledger.db, 'acme', 10n ** 12n)
  await ledger.db.run(fullSpeed, { warmUp: WARM })
  const commands = Array.from({ length: count }, (_, i) => command(`p${i}`, { amount: paise(10_000n) }))
  await accepted(ledger, config, commands)
  const claimNext = (atMost = 1_000) =>
    claim(ledger, {
      merchantId: 'acme',
      atMost,
      owner: 'me',
      leaseMs: 60_000,
      limits: LIMITS,
      sealing: config.sealing,
      fingerprintKey: config.fingerprintKey,
      account: ACCOUNT,
    })
  await claimNext()
  const merchant = config.merchants.get('acme')
  assert.ok(merchant)
  const outcomeDeps: OutcomesDeps = {
    ledger,
    decisions: DECISIONS,
    queryPolicies: new Map([['acme', POLICY]]),
    counted: new Metrics().counter('evidence_total', 'test', ['source', 'outcome']),
    log: silentLogger,
  }
  return { ledger, config, merchant, outcomeDeps, claimNext }
}

/** Signs as the gateway README says, independently of the product's own code; plain ASCII values only. */
function callbackQuery(fields: Record<string, string>, key: string): string {
  const pairs = Object.entries(fields)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}=${value}&`)
    .sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1))
  const sign = createHash('md5')
    .update(`${pairs.join('')}key=${key}`)
    .digest('hex')
    .toUpperCase()
  return new URLSearchParams({ ...fields, sign }).toString()
}

const paidFields = ({ orderNo }: StoredPayout, fields: Record<string, string> = {}) => ({
  amount: '10000',
  mchOrderNo: orderNo,
  fee: '500',
  channelPayNo: '632611200001',
  agentpayOrderId: `AP${orderNo.slice(0, 8)}`,
  status: '2',
  ...fields,
})

async function endpoint(t: TestContext, count: number, lockTimeoutMs?: number) {
  const wire = await onTheWire(t, count)
  const { databaseUrl: url } = wire.config
  const other =
    lockTimeoutMs && connectDatabase({ url, connections: 4, applicationName: 'payoutd-test', lockTimeoutMs })
  if (other) t.after(() => other.close())
  const ledger = other ? { ...wire.ledger, db: other } : wire.ledger
  const { key } = wire.merchant
  const metrics = new Metrics()
  const callbacks = payoutCallbackEndpoint({
    ...wire.outcomeDeps,
    ledger,
    readers: new Map([['acme', readerOf(wire.merchant, parsePayoutCallback)]]),
    kept: new KeptCallbacks({ db: ledger.db, sealing: wire.config.sealing, kind: 'payout' }),
    clock: systemClock,
    log: silentLogger,
    answered: metrics.counter('callbacks_total', 'test', ['merchant', 'answer']),
    took: metrics.seconds('callback_seconds', 'test', []),
  })
  const server: HttpServer = createHttpServer()
  callbacks.routes(server)
  t.after(() => server.close())
  const call = async (query: string, method: 'GET' | 'POST' = 'POST', merchantId = 'acme') => {
    const { statusCode, body } = await server.inject({
      method,
      url: `${callbackPath('payout', merchantId)}?${query}`,
    })
    return [statusCode, body] as const
  }
  return { ...wire, key, call }
}

describe('the callback endpoint', () => {
  for (const method of ['POST', 'GET'] as const) {
    test(`accepts a report by ${method}, and answers success once it is stored`, async (t) => {
      const { ledger, key, call } = await endpoint(t, 1)
      const [payout] = (await payoutsOf(ledger)) as [StoredPayout]
      assert.deepEqual(await call(callbackQuery(paidFields(payout), key), method), [200, 'success'])
      assert.equal((await payoutsOf(ledger))[0]?.state, 'paid')
    })
  }

  test('stores the callbacks that come together with one about a payout that somebody keeps locked', async (t) => {
    const { ledger, key, call } = await endpoint(t, 20, 100)
    const payouts = (await payoutsOf(ledger)) as StoredPayout[]
    const [locked] = payouts as [StoredPayout]
    await ledger.db.transaction('test', async (tx) => {
      await tx.run(locks, locked)
      const answers = await Promise.all(
        payouts.map((payout) => call(callbackQuery(paidFields(payout, { channelPayNo: '' }), key))),
      )
      assert.deepEqual(
        answers.map(([status]) => status),
        payouts.map((payout) => (payout === locked ? 503 : 200)),
      )
    })
  })

  test('makes one transition of the same callback a hundred times at once, and answers success to each', async (t) => {
    const { ledger, key, call } = await endpoint(t, 1)
    const [payout] = (await payoutsOf(ledger)) as [StoredPayout]
    const query = callbackQuery(paidFields(payout), key)
    const answers = await Promise.all(Array.from({ length: 100 }, () => call(query)))
    assert.ok(answers.every(([status]) => status === 200))
    assert.deepEqual(
      (await payoutsOf(ledger)).map(({ state, version }) => [state, version]),
      [['paid', 3]],
    )
    assert.deepEqual(await brokenVersions(ledger), [])
  })

  test('answers 401 to a wrong signature, and changes nothing', async (t) => {
    const { ledger, key, call } = await endpoint(t, 1)
    const [payout] = (await payoutsOf(ledger)) as [StoredPayout]
    const [status] = await call(callbackQuery(paidFields(payout), `${key}x`))
    assert.equal(status, 401)
    const changed = callbackQuery(paidFields(payout), key).replace('status=2', 'status=3')
    assert.equal((await call(changed))[0], 401)
    assert.equal((await payoutsOf(ledger))[0]?.state, 'submitting')
  })

  test('answers 404 for an unknown merchant, and 400 to a request that is no callback', async (t) => {
    const { key, call } = await endpoint(t, 1)
    assert.equal((await call(callbackQuery({ status: '2' }, key), 'POST', 'stranger'))[0], 404)
    assert.equal((await call(''))[0], 400)
    assert.equal((await call('amount=%ff&sign=1'))[0], 400)
  })

  test('stores a signed report about an unknown order as an anomaly, and answers success', async (t) => {
    const { ledger, key, call } = await endpoint(t, 1)
    const query = callbackQuery({ amount: '100', mchOrderNo: 'SOMEBODYELSE', status: '2' }, key)
    assert.deepEqual(await call(query), [200, 'success'])
    assert.deepEqual(await anomaliesOf(ledger), ['unknown-order'])
  })

  test('marks a payout paid though its UTR and fee are unreadable, and stores one anomaly about that', async (t) => {
    const { ledger, key, call } = await endpoint(t, 1)
    const [payout] = (await payoutsOf(ledger)) as [StoredPayout]
    const odd = callbackQuery(paidFields(payout, { channelPayNo: 'N123#45', fee: '5.00' }), key)
    for (let i = 0; i < 2; i++) assert.deepEqual(await call(odd), [200, 'success'])
    assert.equal((await payoutsOf(ledger))[0]?.state, 'paid')
    assert.deepEqual(await anomaliesOf(ledger), ['unreadable-fields'])
    assert.equal((await ledger.db.run(anomalyMessages, {})).length, 1)
  })

  test('makes anomalies of another amount, a contradiction, and an unlisted status, and changes nothing', async (t) => {
    const { ledger, key, call } = await endpoint(t, 3)
    const [a, b, c] = (await payoutsOf(ledger)) as [StoredPayout, StoredPayout, StoredPayout]
    await call(callbackQuery(paidFields(a, { amount: '10100' }), key))
    await call(callbackQuery(paidFields(b), key))
    await call(callbackQuery(paidFields(b, { status: '3' }), key))
    await call(callbackQuery(paidFields(c, { status: '7' }), key))
    assert.deepEqual(
      (await payoutsOf(ledger)).map(({ state }) => state),
      ['submitting', 'paid', 'submitting'],
    )
    assert.deepEqual((await anomaliesOf(ledger)).sort(), [
      'amount-mismatch',
      'contradiction',
      'unlisted-status',
    ])
  })

  test('makes an anomaly of a report that a payout is paid whose money came back, and no longer says that it did', async (t) => {
    const { ledger, config, key, call } = await endpoint(t, 1)
    const [payout] = (await payoutsOf(ledger)) as [StoredPayout]
    const receive = (fields: Record<string, string> = {}) =>
      call(callbackQuery(paidFields(payout, fields), key))
    await receive()
    await receive({ status: '3' })
    const who = { by: 'asha', reason: 'seen in the statement', anomalyId: null, shown: null }
    const outcome = await reversePayout({ merchantId: 'acme', payoutId: 'p0', ...who }, ledger)
    assert.equal(outcome.kind, 'reversed')
    await accepted(ledger, config, [command('again', { batchId: 'b2', amount: paise(10_000n) })], {
      holdDuplicates: true,
    })
    const cameBack = async () =>
      (await ledger.db.run(holdsOf, { merchantId: 'acme', payoutIds: ['again'] }))[0]?.earlierCameBack
    assert.equal(await cameBack(), true)
    await receive({ channelPayNo: '' })
    const [, told] = await ledger.db.run(contradictions, {})
    assert.match(
      told?.detail ?? '',
      /^the gateway reports success for a payout whose money came back \(success,/,
    )
    assert.equal(await cameBack(), false)
  })

  test('takes what another account reports that had an attempt for an order besides, of which a payment counts', async (t) => {
    const { ledger, outcomeDeps } = await onTheWire(t, 1)
    const [payout] = (await payoutsOf(ledger)) as [StoredPayout]
    for (const account of [{ accountId: 'here', settingsHash: 'h' }, THERE])
      await ledger.db.run(addSettings, account)
    await ledger.db.run(addAttempt, THERE)
    const { hear, report } = from(THERE, payout, outcomeDeps)
    for (let i = 0; i < 3; i++) await hear({ kind: 'not-found', exchange })
    assert.deepEqual(await payoutsOf(ledger), [payout])
    await hear({ kind: 'found', report: report('failed') })
    const besides = { state: 'submitting', doubted: true, orderBesides: true, accountId: 'here' }
    assert.deepEqual(await ledger.db.run(doubts, {}), [besides])
    await hear({ kind: 'found', report: report('success') })
    assert.deepEqual(await ledger.db.run(doubts, {}), [{ ...besides, state: 'paid', accountId: 'there' }])
    assert.deepEqual(await anomaliesOf(ledger), ['other-account', 'other-account'])
  })

  test('takes what an account reports that never had an attempt for a sign that the ledger lost one', async (t) => {
    const { ledger, outcomeDeps } = await onTheWire(t, 1)
    const [payout] = (await payoutsOf(ledger)) as [StoredPayout]
    await ledger.db.run(addSettings, { accountId: 'here', settingsHash: 'h' })
    const { hear, report } = from(THERE, payout, outcomeDeps)
    await hear({ kind: 'found', report: report('success') })
    assert.deepEqual(await anomaliesOf(ledger), ['never-sent'])
    assert.deepEqual(await ledger.db.run(recoveringMerchants, {}), [{ merchantId: 'acme' }])
  })

  test('counts repeated callbacks, and no table grows by them', async (t) => {
    const { ledger, key, call } = await endpoint(t, 2)
    const [paid, odd] = (await payoutsOf(ledger)) as [StoredPayout, StoredPayout]
    const contrary = callbackQuery(paidFields(paid, { status: '3' }), key)
    const said = [
      callbackQuery(paidFields(paid), key),
      contrary,
      callbackQuery(paidFields(odd, { amount: '10100' }), key),
      callbackQuery({ amount: '100', mchOrderNo: 'SOMEBODYELSE', status: '2' }, key),
    ]
    for (const query of said) await call(query)
    await call(said[0] as string)
    const before = await ledger.db.run(tableSizes, {})
    for (const query of said) await Promise.all(Array.from({ length: 50 }, () => call(query)))
    for (const query of said) await call(query)
    assert.deepEqual(await ledger.db.run(tableSizes, {}), before)
    const counted = await ledger.db.run(timesHeard, {})
    assert.deepEqual(counted, [
      { what: 'amount-mismatch', times: 52 },
      { what: 'contradiction', times: 52 },
      { what: 'paid', times: 52 },
      { what: 'unknown-order', times: 52 },
    ])
  })

  test('keeps a hundred different reports about one order and counts the rest, but keeps any that complete it', async (t) => {
    const { ledger, outcomeDeps } = await onTheWire(t, 1)
    const [{ orderNo }] = (await payoutsOf(ledger)) as [StoredPayout]
    const says = (n: number, utr: string | null = null): PayoutEvidence => {
      const facts = { mchOrderNo: orderNo, agentpayOrderId: 'AP1', amount: paise(10_000n), fee: null, utr }
      const exchange = { response: { n } }
      const report = { ...facts, status: 'success' as const, errorMessage: null, exchange }
      return {
        merchantId: 'acme',
        mchOrderNo: orderNo,
        source: 'CALLBACK',
        report,
        accountIds: [ACCOUNT.accountId],
      }
    }
    const each = Array.from({ length: 151 }, (_, n) => says(n))
    await applyEvidenceBatch(each.slice(0, 61), outcomeDeps)
    await applyEvidenceBatch(each.slice(61), outcomeDeps)
    await applyEvidenceBatch(
      [says(5), says(200), says(200), says(201, '632611200001'), says(201, '632611200001')],
      outcomeDeps,
    )
    assert.deepEqual(await ledger.db.run(keptAndSaid, {}), [
      { kept: 100, said: 101, note: null },
      { kept: 1, said: 52, note: BEYOND_UNMOVED.note },
      { kept: 1, said: 2, note: 'completes' },
    ])
  })

  test('answers 503 while the store is down, so that the gateway calls again', async (t) => {
    const { ledger, key, call } = await endpoint(t, 1)
    const [payout] = (await payoutsOf(ledger)) as [StoredPayout]
    const query = callbackQuery(paidFields(payout), key)
    const { db } = ledger
    ledger.db = { ...db, transaction: () => Promise.reject(new Error('connection refused')) }
    assert.equal((await call(query))[0], 503)
    ledger.db = db
    assert.deepEqual(await call(query), [200, 'success'])
  })

  test('makes an anomaly of a UTR that another payout, of any merchant, has; it names both, and changes nothing', async (t) => {
    const { ledger, config, key, call } = await endpoint(t, 4)
    await accepted(ledger, config, [command('theirs', { merchantId: 'bolt' })])
    await ledger.db.run(hasUtr, { payoutId: 'theirs', utr: 'SBIN0009' })
    const [a, b, c, d] = (await payoutsOf(ledger)) as [StoredPayout, StoredPayout, StoredPayout, StoredPayout]
    const paid = (payout: StoredPayout, channelPayNo: string) =>
      callbackQuery(paidFields(payout, { channelPayNo }), key)
    await call(paid(a, 'HDFC0001'))
    assert.deepEqual(await anomaliesOf(ledger), [])
    for (let said = 0; said < 3; said++) {
      await call(paid(b, 'hdfc0001'))
      await call(paid(c, 'SBIN0009'))
      await call(paid(d, 'HDFC0002'))
    }
    assert.deepEqual(await ledger.db.run(oddUtrs, {}), [
      {
        payoutId: 'p1',
        times: 1,
        detail: 'payout p1 of acme has UTR hdfc0001, which payout p0 of acme also has',
      },
      {
        payoutId: 'p2',
        times: 1,
        detail: 'payout p2 of acme has UTR SBIN0009, which payout theirs of bolt also has',
      },
    ])
    const stored = await payoutsOf(ledger)
    assert.deepEqual(
      stored.map(({ state }) => state),
      ['paid', 'paid', 'paid', 'paid', 'queued'],
    )
    assert.deepEqual(await brokenVersions(ledger), [])
  })

  test('stores anomalies about payouts that get one UTR together up to the twentieth that has it', async (t) => {
    const { ledger, outcomeDeps } = await onTheWire(t, 25)
    const payouts = await payoutsOf(ledger)
    const report = ({ orderNo, payoutId }: StoredPayout): PayoutEvidence => {
      const order = { mchOrderNo: orderNo, agentpayOrderId: `AP${payoutId}`, amount: paise(10_000n) }
      const said = { status: 'success' as const, fee: null, utr: '0', errorMessage: null, exchange }
      const accountIds = [ACCOUNT.accountId]
      return {
        merchantId: 'acme',
        mchOrderNo: orderNo,
        source: 'CALLBACK',
        report: { ...order, ...said },
        accountIds,
      }
    }
    await applyEvidenceBatch(payouts.slice(0, 23).map(report), outcomeDeps)
    await applyEvidenceBatch(payouts.slice(23).map(report), outcomeDeps)
    const reported = await ledger.db.run(oddUtrs, {})
    assert.equal(reported.length, 19)
    const last = reported.filter(({ detail }) =>
      detail.endsWith('; 20 have it now, and payoutd reports no more of them'),
    )
    assert.equal(last.length, 1)
    assert.ok((await payoutsOf(ledger)).every(({ state }) => state === 'paid'))
  })

  test('applies reports about a payout in their order, even if the first waits for another payout', async (t) => {
    const { ledger, key, call } = await endpoint(t, 40)
    const [locked, ...others] = (await payoutsOf(ledger)) as [StoredPayout, ...StoredPayout[]]
    const calls: ReturnType<typeof call>[] = []
    await ledger.db.transaction('test', async (tx) => {
      await tx.run(locks, { payoutId: locked.payoutId })
      calls.push(...[locked, ...others].map((payout) => call(callbackQuery(paidFields(payout), key))))
      await eventually('a batch that waits', async () => (await ledger.db.run(waiters, {})).length > 0)
      calls.push(...others.map((payout) => call(callbackQuery(paidFields(payout, { status: '3' }), key))))
      // Gives the other transaction, if there is one, time to run.
      await Promise.race([calls.at(-1), pause(100)])
    })
    await Promise.all(calls)
    assert.deepEqual(new Set((await payoutsOf(ledger)).map(({ state }) => state)), new Set(['paid']))
  })

  test('neither deadlocks nor loses a callback that comes before the answer to its apply', async (t) => {
    const { ledger, key, call, outcomeDeps } = await endpoint(t, 400)
    const payouts = await payoutsOf(ledger)
    const shuffled = () => [...payouts].sort(() => randomInt(3) - 1)
    const shuffledOutcomes = shuffled().map(async (payout) => ({
      ...(await attemptOf(ledger, payout.payoutId)),
      answer: {
        kind: 'accepted' as const,
        agentpayOrderId: `AP${payout.orderNo.slice(0, 8)}`,
        fee: paise(500n),
        status: 'processing' as const,
        exchange,
      },
      tell: false,
    }))
    const outcomes = await Promise.all(shuffledOutcomes)
    const recording = Array.from({ length: 20 }, (_, i) =>
      recordAnswers(outcomes.slice(i * 20, i * 20 + 20), { ...outcomeDeps, log: silentLogger }),
    )
    const calling = shuffled().map((payout) =>
      call(callbackQuery(paidFields(payout, { channelPayNo: `UTR${payout.payoutId}` }), key)),
    )
    const answers = await Promise.all(calling)
    await Promise.all(recording)
    assert.ok(answers.every(([status]) => status === 200))
    assert.ok((await payoutsOf(ledger)).every(({ state }) => state === 'paid'))
    assert.deepEqual(await brokenVersions(ledger), [])
    assert.deepEqual(await anomaliesOf(ledger), [])
  })
})

describe('the poller', () => {
  const found = (payout: StoredPayout, status: 'success' | 'processing') => ({
    kind: 'found' as const,
    report: {
      mchOrderNo: payout.orderNo,
      agentpayOrderId: 'AP1',
      status,
      amount: paise(10_000n),
      fee: paise(500n),
      utr: null,
      errorMessage: null,
      exchange,
    },
  })
  const notFound: QueryAnswer = { kind: 'not-found', exchange }

  async function poller(
    t: TestContext,
    count: number,
    query: (orderNo: string) => Promise<QueryAnswer>,
    queryPolicy = POLICY,
  ) {
    const wire = await onTheWire(t, count)
    const { ledger, outcomeDeps } = wire
    const poller = payoutPoller({
      ...outcomeDeps,
      queriers: new Map([['acme', [{ ...ACCOUNT, queryPolicy, query, timeoutMs: 1_000 }]]]),
      presenceCheck: new PresenceCheck(systemClock),
      log: silentLogger,
    })
    /** One round of everything that is due once time has passed. */
    const processAll = async () => {
      await ledger.db.run(laterOn, {})
      await poller.turn()
      await poller.drain()
    }
    const turn = async () => {
      await poller.turn()
      await poller.drain()
    }
    /** The gateway accepts its first attempt. */
    const accept = async ({ payoutId }: StoredPayout) =>
      recordAnswers([{ ...(await attemptOf(ledger, payoutId)), ...ACCEPTED }], {
        ...outcomeDeps,
        log: silentLogger,
      })
    return { ...wire, processAll, turn, accept }
  }

  test('makes the payouts of a process that died unknown, asks about them, and they end', async (t) => {
    const answers: QueryAnswer[] = []
    const { ledger, processAll } = await poller(t, 1, async () => answers.shift() as QueryAnswer)
    const [payout] = (await payoutsOf(ledger)) as [StoredPayout]
    await processAll()
    assert.deepEqual(
      (await payoutsOf(ledger)).map(({ state, reason }) => [state, reason]),
      [['unknown', 'lease-ended']],
    )
    answers.push(found(payout, 'processing'), found(payout, 'success'))
    await processAll()
    assert.equal((await payoutsOf(ledger))[0]?.state, 'processing')
    await processAll()
    assert.equal((await payoutsOf(ledger))[0]?.state, 'paid')
    assert.deepEqual(await brokenVersions(ledger), [])
  })

  test('once absence is confirmed, sends again under the same order number as another attempt; a late "failed" of the first does not end it', async (t) => {
    let known: string | undefined
    const { ledger, processAll, claimNext, accept, outcomeDeps } = await poller(t, 2, async (orderNo) => {
      const [, control] = await payoutsOf(ledger)
      return orderNo === known && control ? found(control, 'processing') : notFound
    })
    const [lost, control] = (await payoutsOf(ledger)) as [StoredPayout, StoredPayout]
    known = control.orderNo
    await accept(control)

    await processAll()
    await processAll()
    await processAll()
    const [queued] = (await payoutsOf(ledger)) as [StoredPayout]
    assert.deepEqual([queued.state, queued.reason, queued.ready], ['queued', 'proved-absent', true])
    const { wave } = await claimNext()
    assert.deepEqual(
      wave.map(({ payout }) => [payout.orderNo, payout.attempt]),
      [[lost.orderNo, 2]],
    )

    const report = { ...found(lost, 'processing').report, agentpayOrderId: 'AP0', status: 'failed' } as const
    const said = { source: 'CALLBACK', report, accountIds: [ACCOUNT.accountId] } as const
    await applyEvidenceBatch([{ merchantId: 'acme', mchOrderNo: lost.orderNo, ...said }], outcomeDeps)
    const now = async () => (await payoutsOf(ledger)).find(({ payoutId }) => payoutId === lost.payoutId)
    assert.equal((await now())?.state, 'submitting', 'of the first order, and the second is on the wire')
    const second = { ...(await attemptOf(ledger, lost.payoutId, 2)), ...ACCEPTED }
    await recordAnswers([second], { ...outcomeDeps, log: silentLogger })
    await applyEvidenceBatch([{ merchantId: 'acme', mchOrderNo: lost.orderNo, ...said }], outcomeDeps)
    assert.equal((await now())?.state, 'processing')
    const paid = { ...said, report: found(lost, 'success').report }
    await applyEvidenceBatch([{ merchantId: 'acme', mchOrderNo: lost.orderNo, ...paid }], outcomeDeps)
    assert.equal((await now())?.state, 'paid')
    assert.deepEqual(await anomaliesOf(ledger), [])
  })

  /** A payout that is lost, and one that the gateway accepted and finds. */
  async function lostBesideControl(t: TestContext, queryPolicy = POLICY) {
    let known: string | undefined
    const query = async (orderNo: string) => {
      const [, control] = await payoutsOf(ledger)
      return orderNo === known && control ? found(control, 'processing') : notFound
    }
    const { ledger, processAll, accept, turn } = await poller(t, 2, query, queryPolicy)
    const [, control] = (await payoutsOf(ledger)) as [StoredPayout, StoredPayout]
    known = control.orderNo
    await accept(control)
    return { ledger, processAll, turn, control }
  }

  test('confirms no absence without an order that is known to exist, however often the gateway answers "not found"', async (t) => {
    const { ledger, processAll } = await poller(t, 1, async () => notFound)
    for (let i = 0; i < 6; i++) await processAll()
    assert.equal((await payoutsOf(ledger))[0]?.state, 'unknown')
  })

  test('confirms no absence if the gateway does not find the known order either: payoutd asks in the wrong place', async (t) => {
    const { ledger, processAll, accept } = await poller(t, 2, async () => notFound)
    const [, control] = (await payoutsOf(ledger)) as [StoredPayout, StoredPayout]
    await accept(control)
    for (let i = 0; i < 6; i++) await processAll()
    assert.deepEqual(
      (await payoutsOf(ledger)).map(({ state }) => state),
      ['unknown', 'processing'],
    )
  })

  test('while answers are mixed up, as any process noted, no absence is confirmed', async (t) => {
    const { ledger, processAll } = await lostBesideControl(t)
    const states = async () => (await payoutsOf(ledger)).map(({ state }) => state)
    for (let i = 0; i < 2; i++) await processAll()
    await mixUp(ledger.db)
    for (let i = 0; i < 4; i++) await processAll()
    assert.deepEqual(await states(), ['unknown', 'processing'])
    await inOrderAgain(ledger.db)
    await processAll()
    await inOrderForLong(ledger.db)
    await processAll()
    assert.deepEqual(await states(), ['unknown', 'processing'], 'what was counted before does not count')
    await processAll()
    assert.deepEqual(await states(), ['queued', 'processing'])
  })

  for (const [graceMs, ends] of [
    [30_000, 'queued'],
    [120_000, 'unknown'],
  ] as const)
    test(`after answers were mixed up, as another merchant noted, a payout is ${ends} a minute later by its own grace of ${graceMs} ms`, async (t) => {
      const { ledger, processAll, turn } = await lostBesideControl(t, { ...POLICY, graceMs })
      await processAll()
      await mixUpOnce(ledger.db, 'P7')
      await ledger.db.run(mixedUpMinuteAgo, {})
      for (let i = 0; i < 4; i++) {
        await turn()
        await ledger.db.run(due, {})
      }
      const states = (await payoutsOf(ledger)).map(({ state }) => state)
      assert.deepEqual(states, [ends, 'processing'])
    })

  test('answers that are mixed up where the merchant was before say nothing about its present gateway', async (t) => {
    const { ledger, processAll } = await lostBesideControl(t)
    await mixUp(ledger.db, { ...ACCOUNT, baseUrl: 'https://before.example' })
    for (let i = 0; i < 3; i++) await processAll()
    const states = (await payoutsOf(ledger)).map(({ state }) => state)
    assert.deepEqual(states, ['queued', 'processing'])
  })

  test('confirms no refusal without a presence check once the account has shown an order, also one that is in review', async (t) => {
    for (const isShown of [false, true]) {
      const { ledger, processAll, accept } = await poller(t, 2, async () => notFound)
      const [, control] = (await payoutsOf(ledger)) as [StoredPayout, StoredPayout]
      if (isShown) await accept(control)
      await ledger.db.run(refusedBesideReview, { review: control.payoutId })
      for (let i = 0; i < 4; i++) await processAll()
      const states = (await payoutsOf(ledger)).map(({ state }) => state)
      assert.deepEqual(states, [isShown ? 'unknown' : 'failed', 'review'])
    }
  })

  test('asks again after an answer that cannot be true, with the usual wait, and stores one anomaly', async (t) => {
    let asked = 0
    const { ledger, processAll } = await poller(t, 1, async () => {
      asked++
      const [payout] = (await payoutsOf(ledger)) as [StoredPayout]
      return { kind: 'found', report: { ...found(payout, 'success').report, status: 'unlisted' } }
    })
    for (let i = 0; i < 4; i++) await processAll()
    assert.equal(asked, 3)
    const [payout] = await ledger.db.run(questions, {})
    assert.deepEqual([payout?.state, payout?.queries], ['unknown', 3])
    assert.ok((payout?.waitMs ?? 0) <= 1_000, 'the wait of the query policy, not the lease of the question')
    assert.deepEqual(await ledger.db.run(timesHeard, {}), [{ what: 'unlisted-status', times: 3 }])
    assert.equal((await ledger.db.run(anomalyMessages, {})).length, 1)
  })

  test('stores one anomaly if the database refuses an answer, and asks about the payout again', async (t) => {
    let asked = 0
    const { ledger, processAll } = await poller(t, 1, async () => {
      asked++
      const [payout] = (await payoutsOf(ledger)) as [StoredPayout]
      return found(payout, 'success')
    })
    await ledger.db.run(refusesPaid, {})
    for (let i = 0; i < 3; i++) await processAll()
    assert.deepEqual([await anomaliesOf(ledger), asked], [['not-stored'], 2])
  })

  test('asks the gateway if a request of ours comes back about a waiting payout, and fences nobody', async (t) => {
    const { ledger, config, merchant, outcomeDeps } = await onTheWire(t, 0)
    await accepted(ledger, config, [command('waits')])
    const [payout] = (await payoutsOf(ledger)) as [StoredPayout]
    const query = callbackQuery(paidFields(payout, { reqTime: '20261125120000' }), merchant.key)
    const read = readerOf(merchant, parsePayoutCallback)(query)
    assert.ok(read.kind === 'verified')
    const said = {
      merchantId: 'acme',
      mchOrderNo: payout.orderNo,
      source: 'CALLBACK',
      ...read.report,
    } as const
    await applyEvidenceBatch([said], outcomeDeps)
    assert.deepEqual(await ledger.db.run(recoveringMerchants, {}), [])
    assert.equal((await payoutsOf(ledger))[0]?.state, 'queued')
    assert.deepEqual(await ledger.db.run(toBeQueried, {}).then((all) => all.map(({ orderNo }) => orderNo)), [
      payout.orderNo,
    ])
  })

  test('keeps a waiting payout from being claimed, if a request of ours comes back, until the gateway has answered', async (t) => {
    const { ledger, config, merchant, outcomeDeps, claimNext } = await onTheWire(t, 0)
    await accepted(ledger, config, [command('waits')])
    const [payout] = (await payoutsOf(ledger)) as [StoredPayout]
    const query = callbackQuery(paidFields(payout, { reqTime: '20261125120000' }), merchant.key)
    const read = readerOf(merchant, parsePayoutCallback)(query)
    assert.ok(read.kind === 'verified')
    const order = { merchantId: 'acme', mchOrderNo: payout.orderNo }
    await applyEvidenceBatch([{ ...order, source: 'CALLBACK', ...read.report }], outcomeDeps)
    await claimNext()
    assert.equal((await payoutsOf(ledger))[0]?.state, 'queued')
    const asked = { ...ACCOUNT, presence: false, queryPolicy: POLICY }
    const answer = { ...order, source: 'QUERY', answer: notFound } as const
    for (const [askedAt, state] of [
      [0, 'queued'],
      [systemClock.now() + 1_000, 'submitting'],
    ] as const) {
      await applyEvidenceBatch([{ ...answer, ...asked, askedAt }], outcomeDeps)
      await claimNext()
      assert.equal((await payoutsOf(ledger))[0]?.state, state)
    }
  })

  test('a payout that waits to be sent again waits for an answer from a grace after answers were mixed up', async (t) => {
    const { ledger, outcomeDeps } = await onTheWire(t, 1)
    const [payout] = (await payoutsOf(ledger)) as [StoredPayout]
    await ledger.db.run(waitsForAnswer, {})
    await mixUpOnce(ledger.db, 'P7')
    const graceEnds = systemClock.now() + 1_000 + POLICY.graceMs
    const order = { merchantId: 'acme', mchOrderNo: payout.orderNo, source: 'QUERY', ...ACCOUNT } as const
    const asked = { answer: notFound, presence: true, queryPolicy: POLICY }
    for (const [askedAt, isReady] of [
      [graceEnds - 1_000, false],
      [graceEnds + 1_000, true],
    ] as const) {
      await applyEvidenceBatch([{ ...order, ...asked, askedAt }], outcomeDeps)
      assert.equal((await payoutsOf(ledger))[0]?.ready, isReady)
    }
  })

  test('asks the gateway at once after a callback in doubt, and not again soon after that', async (t) => {
    let asked = 0
    const { ledger, merchant, processAll, turn, outcomeDeps } = await poller(t, 1, async () => {
      asked++
      const [payout] = (await payoutsOf(ledger)) as [StoredPayout]
      return found(payout, 'processing')
    })
    await processAll()
    await processAll()
    assert.equal(asked, 1)
    const [payout] = (await payoutsOf(ledger)) as [StoredPayout]
    const call = async (over: Record<string, string>, unsigned = '') => {
      const query = `${callbackQuery(paidFields(payout, over), merchant.key)}${unsigned}`
      const read = readerOf(merchant, parsePayoutCallback)(query)
      assert.ok(read.kind === 'verified')
      const evidence = {
        merchantId: 'acme',
        mchOrderNo: payout.orderNo,
        source: 'CALLBACK',
        ...read.report,
      } as const
      await applyEvidenceBatch([evidence], outcomeDeps)
    }
    const doubtful = [() => call({ remark: 'a&b' }), () => call({}, '&zone=')]
    for (const each of doubtful) {
      await ledger.db.run(waitLong, { askedSecondsAgo: 60 })
      await each()
      await turn()
      for (let i = 0; i < 3; i++) {
        await ledger.db.run(waitLong, { askedSecondsAgo: 0 })
        await each()
        await turn()
      }
    }
    assert.equal(asked, 1 + doubtful.length)
    assert.deepEqual(await ledger.db.run(timesHeard, {}).then((all) => all.map(({ what }) => what)), [
      'ambiguous-callback',
      'processing',
      'processing',
    ])
  })

  test('absorbs the answer to a query if a callback came while it was under way', async (t) => {
    const question = Promise.withResolvers<void>()
    const callback = Promise.withResolvers<void>()
    const { ledger, processAll, outcomeDeps } = await poller(t, 1, async () => {
      question.resolve()
      await callback.promise
      return notFound
    })
    await processAll()
    const asking = processAll()
    await question.promise
    const [payout] = (await payoutsOf(ledger)) as [StoredPayout]
    const { report } = found(payout, 'success')
    const said = { source: 'CALLBACK', report, accountIds: [ACCOUNT.accountId] } as const
    await applyEvidenceBatch([{ merchantId: 'acme', mchOrderNo: payout.orderNo, ...said }], outcomeDeps)
    callback.resolve()
    await asking
    assert.deepEqual(
      (await payoutsOf(ledger)).map(({ state }) => state),
      ['paid'],
    )
    assert.deepEqual(await anomaliesOf(ledger), [])
  })
})
