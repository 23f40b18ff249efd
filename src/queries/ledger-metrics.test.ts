import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { ACCOUNT, accepted, setBalance, testLedger, upsertMerchant } from '../../test/ledger.ts'
import { POLICY, payinLedger, report } from '../../test/payins.ts'
import { command } from '../domain/commands/command.fixture.ts'
import { storeDecisions } from '../ledger/ledger.ts'
import { acknowledgeAnomalies } from '../operators/acknowledge.ts'
import { decided, submit } from '../operators/operations.fixture.ts'
import { pauseMerchant } from '../operators/pause.ts'
import { fence } from '../operators/recovery/recovery.ts'
import { applyPayinEvidenceBatch } from '../payins/outcomes.ts'
import { Metrics } from '../platform/metrics.ts'
import { type Database, sql, withSession } from '../platform/postgres/postgres.ts'
import { ledgerMetrics } from './ledger-metrics.ts'
import { anomaliesOf } from './sql/anomalies.ts'

async function merchant(t: TestContext) {
  const { ledger, config } = await testLedger(t)
  await ledger.db.run(upsertMerchant, {
    merchantId: 'acme',
    ...ACCOUNT,
    feeEstimate: 0n,
  })
  return { ledger, config }
}

/** A scrape: the samples of the ledger by name and labels. */
async function scrape(metrics: Metrics): Promise<Map<string, number>> {
  const lines = (await metrics.registry.metrics()).split('\n')
  const ours = /^payoutd_(ledger|outbox|merchant|payouts|payins|anomalies|snapshots)/
  return new Map(
    lines
      .filter((line) => ours.test(line))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )
}

test('a scrape shows what waits in the outbox and what a merchant has in doubt', async (t) => {
  const { ledger, config } = await merchant(t)
  await accepted(ledger, config, [command('p-1'), command('p-2')])
  await decided(ledger, 'p-1', submit)
  const metrics = new Metrics()
  ledgerMetrics(metrics, ledger.db)
  const samples = await scrape(metrics)
  assert.equal(samples.get('payoutd_ledger_readable'), 1)
  assert.equal(samples.get('payoutd_outbox_messages'), 3)
  assert.ok((samples.get('payoutd_outbox_oldest_seconds') ?? 0) > 0)
  assert.equal(samples.get('payoutd_payouts{merchant="acme",state="submitting"}'), 1)
  assert.equal(samples.get('payoutd_payouts{merchant="acme",state="review"}'), 0)
})

test('anomalies are counted by kind until somebody acknowledges them', async (t) => {
  const { ledger } = await merchant(t)
  const about = {
    merchantId: 'acme',
    payoutId: null,
    detail: '',
    source: 'CALLBACK',
    exchange: null,
  } as const
  for (const [orderNo, kind] of [
    ['P1', 'unknown-order'],
    ['P2', 'unknown-order'],
    ['P3', 'contradiction'],
  ] as const) {
    await ledger.db.transaction('test', (tx) =>
      storeDecisions(tx, ledger, [{ anomaly: { ...about, orderNo, kind } }]),
    )
  }
  const metrics = new Metrics()
  ledgerMetrics(metrics, ledger.db)
  const counts = async () => {
    const samples = await scrape(metrics)
    const of = (kind: string) =>
      samples.get(`payoutd_anomalies_unacknowledged{merchant="acme",kind="${kind}"}`)
    return [of('unknown-order'), of('contradiction')]
  }
  assert.deepEqual(await counts(), [2, 1])
  const listed = await ledger.db.run(anomaliesOf, { merchantId: 'acme', limit: 3 })
  const anomalyIds = listed.slice(1).map(({ anomalyId }) => anomalyId)
  await acknowledgeAnomalies({ merchantId: 'acme', anomalyIds, by: 'asha', reason: 'theirs' }, ledger.db)
  assert.deepEqual(await counts(), [1, undefined])
})

test('a gauge that counts up to a bound states that in its help', async (t) => {
  const { ledger } = await merchant(t)
  const metrics = new Metrics()
  ledgerMetrics(metrics, ledger.db)
  const bounded = (await metrics.registry.getMetricsAsJSON())
    .filter(({ help }) => /\bcounted up to 10000\b/.test(help))
    .map(({ name }) => name.replace('payoutd_', ''))
  assert.deepEqual(bounded.toSorted(), [
    'anomalies_unacknowledged',
    'merchant_balance_short_payouts',
    'outbox_messages',
    'outbox_refused',
    'payins',
    'payouts',
    'payouts_held',
  ])
})

const backdate = sql<{ payinId: string; seconds: number }>`
  update payins set created_at = now() - ${'seconds'} * interval '1 second' where payin_id = ${'payinId'}`

test('payins are counted by the state in which they wait, with the age of the oldest, until they end', async (t) => {
  const { ledger, create, outcomeDeps } = await payinLedger(t)
  await ledger.db.run(upsertMerchant, {
    merchantId: 'acme',
    ...ACCOUNT,
    feeEstimate: 0n,
  })
  const first = await create('order-1')
  await create('order-2')
  await ledger.db.run(backdate, { payinId: first.payinId, seconds: 3_600 })
  const metrics = new Metrics()
  ledgerMetrics(metrics, ledger.db)
  const payinsIn = async (state: string) => {
    const samples = await scrape(metrics)
    const of = (name: string) => samples.get(`payoutd_payins${name}{merchant="acme",state="${state}"}`) ?? NaN
    return { count: of(''), hours: Math.floor(of('_oldest_seconds') / 3_600) }
  }
  assert.deepEqual(await payinsIn('open'), { count: 2, hours: 1 })
  for (const state of ['creating', 'unknown', 'review']) {
    assert.deepEqual(await payinsIn(state), { count: 0, hours: 0 }, state)
  }
  const answer = { kind: 'known', report: report(first, 'paid') } as const
  const { merchantId, payinId } = first
  const asked = {
    source: 'QUERY',
    queryPolicy: POLICY,
    ...ACCOUNT,
    askedAt: 0,
    presence: false,
  } as const
  await applyPayinEvidenceBatch([{ merchantId, payinId, answer, ...asked }], outcomeDeps)
  assert.deepEqual(await payinsIn('open'), { count: 1, hours: 0 })
})

test('a pause, a fence and a balance show in the next scrape', async (t) => {
  const { ledger } = await merchant(t)
  const metrics = new Metrics()
  ledgerMetrics(metrics, ledger.db)
  const before = await scrape(metrics)
  assert.equal(before.get('payoutd_merchant_paused{merchant="acme"}'), 0)
  assert.equal(before.get('payoutd_merchant_recovering{merchant="acme"}'), 0)
  assert.equal(before.get('payoutd_merchant_balance_paise{merchant="acme"}'), undefined)

  await setBalance(ledger.db, 'acme', 12_345n)
  await pauseMerchant(ledger.db, { merchantId: 'acme', by: 'asha', reason: 'audit', feeEstimate: null })
  await fence(ledger.db, [{ merchantId: 'acme', feeEstimate: 0n }], { by: 'asha', reason: 'disk lost' })
  const after = await scrape(metrics)
  assert.equal(after.get('payoutd_merchant_paused{merchant="acme"}'), 1)
  assert.equal(after.get('payoutd_merchant_recovering{merchant="acme"}'), 1)
  assert.equal(after.get('payoutd_merchant_balance_paise{merchant="acme"}'), 12_345)
  assert.ok(after.has('payoutd_merchant_balance_timestamp_seconds{merchant="acme"}'))
})

test('a ledger without merchants is readable, and its outbox is shown', async (t) => {
  const { ledger } = await testLedger(t)
  const metrics = new Metrics()
  ledgerMetrics(metrics, ledger.db)
  const { payoutd_snapshots_oldest_seconds: _, ...samples } = Object.fromEntries(await scrape(metrics))
  assert.deepEqual(samples, {
    payoutd_ledger_readable: 1,
    payoutd_outbox_messages: 0,
    payoutd_outbox_oldest_seconds: 0,
    payoutd_outbox_refused: 0,
  })
})

test('a scrape shows the age of the oldest snapshot that somebody keeps', async (t) => {
  const { ledger, config } = await merchant(t)
  const metrics = new Metrics()
  ledgerMetrics(metrics, ledger.db)
  await withSession(config.databaseUrl, async (dump) => {
    await dump.query('begin isolation level repeatable read; select 1')
    const began = performance.now()
    await pause(50)
    // Others on this server may keep an older one.
    const keptMs = performance.now() - began
    const oldest = (await scrape(metrics)).get('payoutd_snapshots_oldest_seconds') ?? NaN
    assert.ok(oldest * 1_000 >= keptMs, `${oldest} s, and kept for ${keptMs} ms`)
  })
})

test('a scrape costs one statement', async (t) => {
  const { ledger } = await merchant(t)
  let statements = 0
  const db: Database = {
    ...ledger.db,
    run: (statement, params) => {
      statements++
      return ledger.db.run(statement, params)
    },
  }
  const metrics = new Metrics()
  ledgerMetrics(metrics, db)
  await scrape(metrics)
  await scrape(metrics)
  assert.equal(statements, 2)
})

test('while the database is away no gauge shows zero, and other metrics are still there', async (t) => {
  const { ledger } = await merchant(t)
  let away = false
  const db: Database = {
    ...ledger.db,
    run: (statement, params) =>
      away ? Promise.reject(new Error('connection refused')) : ledger.db.run(statement, params),
  }
  const metrics = new Metrics()
  metrics.counter('things_total', 'things', []).inc()
  ledgerMetrics(metrics, db)
  await scrape(metrics)
  away = true
  assert.deepEqual(Object.fromEntries(await scrape(metrics)), { payoutd_ledger_readable: 0 })
  assert.match(await metrics.registry.metrics(), /payoutd_things_total 1/)
  away = false
  assert.equal((await scrape(metrics)).get('payoutd_ledger_readable'), 1)
})
