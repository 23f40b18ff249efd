import assert from 'node:assert/strict'
import { test } from 'node:test'
import { accepted, testLedger, upsertMerchant } from '../../test/ledger.ts'
import { mixUp } from '../../test/mixed-answers.ts'
import { command } from '../domain/commands/command.fixture.ts'
import { paise } from '../domain/money.ts'
import { become } from '../domain/payout/transition.ts'
import { decided } from '../operators/operations.fixture.ts'
import { pauseMerchant } from '../operators/pause.ts'
import { fence } from '../operators/recovery/recovery.ts'
import { type Database, sql } from '../platform/postgres/postgres.ts'
import { systemClock } from '../platform/running/clock.ts'
import { overdue } from '../queries/sql/overdue.ts'
import { saveCircuit } from '../stages/dispatch/sql/funds.ts'
import { examine } from './examine.ts'
import { checkOverdue, checkSending, stoppedSendingChecks } from './stopped-sending.ts'

async function findings(db: Database) {
  const checks = stoppedSendingChecks(db).map(({ name, run }) => ({ name, run }))
  const found = await examine(checks, {
    addresses: { database: '', kafka: '', registry: '' },
    limitMs: 10_000,
    clock: systemClock,
    onFound: () => undefined,
  })
  return found.map(({ finding }) => ({ state: finding.state, what: finding.what }))
}

test('a merchant that sends is no reason to warn', async (t) => {
  const { ledger } = await testLedger(t)
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  assert.deepEqual(
    (await findings(ledger.db)).map(({ state }) => state),
    Array.from({ length: 11 }, () => 'good'),
  )
})

const payinsInReview = sql<object>`
  insert into payins (merchant_id, payin_id, fingerprint, amount, currency, state, version, expires_at, created_at)
  select 'acme', 'C' || n, '', 100, 'INR', 'review', 3, now(), '2026-11-21T12:00:00Z'::timestamptz + n * interval '1 hour'
  from generate_series(1, 2) n`

test('payins in review are counted, and the oldest is named', async (t) => {
  const { ledger } = await testLedger(t)
  await ledger.db.run(payinsInReview, {})
  const found = await findings(ledger.db)
  assert.deepEqual(
    found.filter(({ state }) => state === 'warning').map(({ what }) => what),
    [
      'it is unknown whether these payins are paid: 2 of merchant acme, the oldest C1 from 2026-11-21 13:00:00.000Z',
    ],
  )
})

test('a pause, an open circuit and payouts in review cause warnings; that of the pause says by whom and since when', async (t) => {
  const { ledger, config } = await testLedger(t)
  for (const merchantId of ['acme', 'bolt']) {
    await ledger.db.run(upsertMerchant, { merchantId, settingsHash: 'h', feeEstimate: 0n })
  }
  await pauseMerchant(ledger.db, { merchantId: 'acme', by: 'meera', reason: 'audit', feeEstimate: null })
  await ledger.db.run(saveCircuit, {
    merchantId: 'bolt',
    available: null,
    claimedTotal: paise(0n),
    feeEstimate: paise(0n),
    feeShare: null,
    warmUp: 0,
    learnedRate: null,
    rateLoweredAt: null,
    rateRaisedAt: null,
    consecutiveFailures: 0,
    refusals: 0,
    circuitOpened: 1,
    circuitOpenUntil: Date.UTC(2099, 0),
    circuitReason: '5 × ECONNREFUSED',
  })
  await accepted(ledger, config, [command('p1'), command('p2')])
  await decided(ledger, 'p1', (before) => ({
    change: { before, after: become(before, 'review', {}), source: 'CLOCK', exchange: null },
  }))
  await mixUp(ledger.db)
  const [paused, circuits, answers, review] = await findings(ledger.db)
  assert.equal(paused?.state, 'warning')
  assert.match(paused?.what ?? '', /^acme was paused by meera at \d{4}-\S+ \S+Z: audit$/)
  assert.deepEqual(circuits, {
    state: 'warning',
    what: "bolt's circuit is open until 2099-01-01 00:00:00.000Z: 5 × ECONNREFUSED",
  })
  assert.equal(answers?.state, 'warning')
  assert.match(
    answers?.what ?? '',
    /^https:\/\/gateway.example answered a question about order P7 of bolt with another order until \d{4}-\S+ \S+Z: no order there counts as absent until/,
  )
  assert.deepEqual(review, { state: 'warning', what: 'a person has to decide: 1 of merchant acme' })
})

test('a fenced merchant causes a warning, with what to do', async (t) => {
  const { ledger } = await testLedger(t)
  const who = { by: 'asha', reason: 'disk lost' }
  await fence(ledger.db, [{ merchantId: 'acme', feeEstimate: 0n }], who)
  const fenced = (await findings(ledger.db)).at(-5)
  assert.equal(fenced?.state, 'warning')
  assert.match(
    fenced?.what ?? '',
    /^acme is fenced until payoutd recover ends, by asha since \d{4}-\S+ \S+Z: disk lost$/,
  )
})

const asked = sql<object>`
  update merchants set available = 1000000000, snapshot_at = now(), snapshot_in_doubt = 0, warm_up = 9`
const oldMessage = sql<object>`
  insert into outbox (shard, topic, keys, event_ids, types, contents, headers, bytes, at)
  values (0, 'payout.events', '{k}', array[gen_random_uuid()], '{t}', array[''::bytea], array[null::jsonb], 0, now() - interval '90 s')`

test('payouts that could be sent, and messages that wait to be published, are wrong if nobody does it', async (t) => {
  const { ledger, config } = await testLedger(t)
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  await ledger.db.run(asked, {})
  await accepted(ledger, config, [command('p1'), command('p2')])
  const [sending] = (await findings(ledger.db)).slice(-3)
  assert.deepEqual(sending, {
    state: 'wrong',
    what: 'payouts could be sent, and no payoutd sends them: 2 of merchant acme',
  })
  await pauseMerchant(ledger.db, { merchantId: 'acme', by: 'meera', reason: 'audit', feeEstimate: null })
  await ledger.db.run(oldMessage, {})
  const [paused, , publishing] = (await findings(ledger.db)).slice(-3)
  assert.equal(paused?.state, 'good')
  assert.equal(publishing?.state, 'wrong')
  assert.match(publishing?.what ?? '', /^messages have waited for 9\d s, and no payoutd publishes them$/)
})

test('payouts are good that go on between two looks', () => {
  const look = { merchantId: 'acme', claimedTotal: paise(100n), nextPayoutId: 'p1', waiting: 5 }
  assert.equal(checkSending({ before: [look], after: [look] }).state, 'wrong')
  assert.equal(checkSending({ before: [look], after: [{ ...look, claimedTotal: 200n }] }).state, 'good')
  assert.equal(checkSending({ before: [look], after: [{ ...look, nextPayoutId: 'p2' }] }).state, 'good')
  assert.equal(checkSending({ before: [look], after: [] }).state, 'good')
  const late = { merchantId: 'acme', count: 1_000, oldestSeconds: 200, firstPayoutId: 'p1' }
  assert.equal(checkOverdue({ before: [late], after: [late] }).state, 'warning')
  assert.equal(checkOverdue({ before: [late], after: [{ ...late, firstPayoutId: 'p9' }] }).state, 'good')
})

const submitting = sql<{ state: string; seconds: number }>`
  update payouts set state = ${'state'}, attempt = 1, ready = false, due_at = now() - ${'seconds'}::int * interval '1 second'`
const pastDeadline = sql<object>`
  update payouts set state = 'unknown', deadline = now() - interval '150 s', due_at = now() - interval '150 s'`

test('a lease or a query that nobody has looked after for two minutes causes a warning, and dispatch is asked for beside it', async (t) => {
  const { ledger, config } = await testLedger(t)
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  await ledger.db.run(asked, {})
  await accepted(ledger, config, [command('p1'), command('p2')])
  const late = async () => {
    const rows = await ledger.db.run(overdue, {})
    return checkOverdue({ before: rows, after: rows })
  }
  for (const state of ['submitting', 'unknown', 'processing', 'held', 'queued']) {
    await ledger.db.run(submitting, { state, seconds: 60 })
    assert.equal((await late()).state, 'good')
    await ledger.db.run(submitting, { state, seconds: 150 })
    const { state: found, what } = await late()
    assert.equal(found, 'warning')
    assert.match(
      what,
      /^payouts should have been asked about or moved on, and were not: 2 of merchant acme, the first for 15\d s$/,
    )
  }
  await ledger.db.run(pastDeadline, {})
  assert.match((await late()).what, /: 2 of merchant acme, /)
  await accepted(ledger, config, [command('p3')])
  const [sending, moving] = (await findings(ledger.db)).slice(-3)
  assert.match(sending?.what ?? '', /^payouts could be sent, and no payoutd sends them: 1 of merchant acme/)
  assert.equal(moving?.state, 'warning')
})
