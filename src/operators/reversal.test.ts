import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { accepted, payoutsOf, testLedger } from '../../test/ledger.ts'
import { outboxMessages } from '../../test/outbox-messages.ts'
import { command } from '../domain/commands/command.fixture.ts'
import { reversalEventId } from '../domain/identifiers.ts'
import { type Paise, paise } from '../domain/money.ts'
import { applyEvidence } from '../domain/payout/apply-evidence.ts'
import { QUERY_POLICY } from '../domain/payout/payout.fixture.ts'
import { anomaly } from '../domain/payout/transition.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { findAnomaly } from '../queries/anomalies.ts'
import { tellPayout } from '../queries/payout-story.ts'
import { payoutsNamed } from '../queries/sql/payouts/list.ts'
import { listText } from '../views/list-text.ts'
import { storyText } from '../views/story-text.ts'
import { acknowledgeAnomalies } from './acknowledge.ts'
import { accept, decided, submit } from './operations.fixture.ts'
import { previewReverse, reversePayout } from './reversal.ts'

const KEY = { merchantId: 'acme', payoutId: 'p-1' }
const REQUEST = {
  ...KEY,
  by: 'asha',
  reason: 'came back to account 50100123456789',
  anomalyId: null,
  shown: null,
}
const POLICY = { ...QUERY_POLICY, graceMs: 1_000 }
const onResults = sql<{ topic: string }, { type: string; eventId: string; key: string; value: Buffer }>`
  select type, event_id, key, value from ${outboxMessages} where topic = ${'topic'} order by position, n`

/** The gateway accepted `p-1`; `report` is what it reports next. */
async function sent(t: TestContext) {
  const opened = await testLedger(t)
  const { ledger, config } = opened
  await accepted(ledger, config, [command('p-1')])
  await decided(ledger, 'p-1', submit)
  await decided(ledger, 'p-1', accept)
  const report = (status: 'success' | 'failed', fields: { amount?: Paise | null } = {}) =>
    decided(ledger, 'p-1', (payout, now) => {
      const said = { mchOrderNo: payout.orderNo ?? '', agentpayOrderId: 'AP-p-1', amount: payout.amount }
      const rest = { fee: null, utr: '632611200001', errorMessage: null, exchange: { request: { status } } }
      return applyEvidence(payout, { ...said, ...rest, ...fields, status }, 'CALLBACK', POLICY, now)
    })
  const anomalyIds = async () =>
    (await tellPayout(ledger.db, KEY, config.sealing)).anomalies.map(({ anomalyId }) => anomalyId)
  return { ...opened, report, anomalyIds }
}

/** Paid, and reported as failed a day later. */
async function returned(t: TestContext) {
  const opened = await sent(t)
  await opened.report('success')
  await opened.report('failed')
  const [anomalyId] = await opened.anomalyIds()
  return { ...opened, anomalyId: anomalyId ?? assert.fail('there is no anomaly') }
}

test('a returned transfer is published beside the result, which stands, and acknowledges the anomaly', async (t) => {
  const { ledger, config, codec, anomalyId } = await returned(t)
  const [before] = await payoutsOf(ledger)
  const outcome = await reversePayout(REQUEST, ledger)
  assert.deepEqual(outcome.kind === 'reversed' && outcome.anomalyId, anomalyId)
  assert.deepEqual(await payoutsOf(ledger), [before])
  assert.equal(before?.state, 'paid')

  const messages = await ledger.db.run(onResults, { topic: ledger.topics.results })
  assert.deepEqual(
    messages.map(({ type, key }) => [type, key]),
    [
      ['in.payoutd.PayoutResult', 'acme:p-1'],
      ['in.payoutd.PayoutReversed', 'acme:p-1'],
    ],
  )
  assert.equal(messages[1]?.eventId, reversalEventId('acme', 'p-1'))
  const [result, decoded] = await Promise.all(messages.map(({ value }) => codec.decode(value)))
  assert.ok(result?.kind === 'decoded' && decoded?.kind === 'decoded')
  const { occurredAt, ...published } = decoded.value as Record<string, unknown>
  assert.equal(typeof occurredAt, 'number')
  assert.deepEqual(published, {
    payoutId: 'p-1',
    merchantId: 'acme',
    batchId: 'november',
    mchOrderNo: before?.orderNo,
    agentpayOrderId: 'AP-p-1',
    amount: 5_000_000n,
    currency: 'INR',
    utr: '632611200001',
    anomalyId,
    reason: 'came back to account ••••6789',
    evidence: 'OPERATOR',
    version: before?.version,
    paidAt: (result.value as { occurredAt: number }).occurredAt,
  })
  const anomaly = await findAnomaly(ledger.db, 'acme', anomalyId)
  assert.equal(anomaly?.acknowledgedBy, 'asha')
  const text = storyText(await tellPayout(ledger.db, KEY, config.sealing))
  assert.match(text, /returned +as asha confirmed at \S+ \S+Z: came back to account ••••6789 \(anomaly /)
})

test('a list of payouts shows which transfers came back', async (t) => {
  const { ledger } = await returned(t)
  const listed = () => ledger.db.run(payoutsNamed, { merchantId: 'acme', payoutIds: ['p-1'] })
  assert.match(listText(await listed()), /₹50,000.00 +paid +/)
  await reversePayout(REQUEST, ledger)
  assert.match(listText(await listed()), /₹50,000.00 +paid \(came back\) /)
})

test('once only: a second confirmation is refused with who made the first, and publishes nothing', async (t) => {
  const { ledger } = await returned(t)
  const both = await Promise.all([
    reversePayout(REQUEST, ledger),
    reversePayout({ ...REQUEST, by: 'meera' }, ledger),
  ])
  assert.deepEqual(both.map(({ kind }) => kind).sort(), ['already', 'reversed'])
  const first = both[0].kind === 'reversed' ? 'asha' : 'meera'
  const third = await reversePayout({ ...REQUEST, by: 'dev' }, ledger)
  assert.equal(third.kind === 'already' && third.reversedBy, first)
  assert.equal((await ledger.db.run(onResults, { topic: ledger.topics.results })).length, 2)
})

test('a preview shows what would happen, and changes nothing', async (t) => {
  const { ledger, config, anomalyId } = await returned(t)
  const outcome = await previewReverse(REQUEST, ledger.db)
  assert.equal(outcome.kind === 'reversed' && outcome.anomalyId, anomalyId)
  assert.equal((await tellPayout(ledger.db, KEY, config.sealing)).reversal, null)
  assert.equal((await findAnomaly(ledger.db, 'acme', anomalyId))?.acknowledgedAt, null)
})

test('a reversal that was shown before the gateway reported something else is not carried out', async (t) => {
  const { ledger, report } = await returned(t)
  const would = await previewReverse(REQUEST, ledger.db)
  assert.ok(would.kind === 'reversed')
  const shown = { ...REQUEST, anomalyId: would.anomalyId, shown: would.evidenceCount }
  await report('success')
  assert.equal((await reversePayout(shown, ledger)).kind, 'moved')
  const again = await previewReverse(REQUEST, ledger.db)
  assert.ok(again.kind === 'reversed')
  assert.equal((await reversePayout({ ...shown, shown: again.evidenceCount }, ledger)).kind, 'reversed')
})

const sameAgain = sql<object>`
  insert into anomalies (merchant_id, anomaly_id, payout_id, order_no, kind, detail, source, exchange)
  select merchant_id, gen_random_uuid(), payout_id, order_no, kind, detail || ', as an earlier version kept it', source, exchange
  from anomalies`

test('if the gateway reported it in two anomalies, the operator must name one; repeating a report adds none', async (t) => {
  const { ledger, report, anomalyIds } = await returned(t)
  await report('failed')
  assert.equal((await anomalyIds()).length, 1)
  await ledger.db.run(sameAgain, {})
  const ids = await anomalyIds()
  assert.deepEqual(await reversePayout(REQUEST, ledger), { kind: 'several', anomalyIds: ids })
  const named = await reversePayout({ ...REQUEST, anomalyId: ids[1] ?? '' }, ledger)
  assert.equal(named.kind === 'reversed' && named.anomalyId, ids[1])
})

test('an anomaly that somebody acknowledged before keeps that name', async (t) => {
  const { ledger, anomalyId } = await returned(t)
  const meera = { merchantId: 'acme', by: 'meera', reason: 'asked the bank', anomalyIds: [anomalyId] }
  await acknowledgeAnomalies(meera, ledger.db)
  assert.equal((await reversePayout(REQUEST, ledger)).kind, 'reversed')
  const { acknowledgedBy, acknowledgedReason } = (await findAnomaly(ledger.db, 'acme', anomalyId)) ?? {}
  assert.deepEqual([acknowledgedBy, acknowledgedReason], ['meera', 'asked the bank'])
})

test('a payout that is not paid cannot come back', async (t) => {
  const { ledger, report } = await sent(t)
  assert.deepEqual(await reversePayout(REQUEST, ledger), { kind: 'not-paid', state: 'processing' })
  await report('failed')
  await report('success')
  assert.deepEqual(await reversePayout(REQUEST, ledger), { kind: 'not-paid', state: 'failed' })
  assert.deepEqual(await reversePayout({ ...REQUEST, payoutId: 'p-9' }, ledger), { kind: 'unknown' })
})

test('a return that the gateway reports with another amount, or none, can be confirmed', async (t) => {
  for (const amount of [null, paise(0n), paise(4_990_000n)]) {
    const { ledger, report } = await sent(t)
    await report('success')
    await report('failed', { amount })
    assert.equal((await reversePayout(REQUEST, ledger)).kind, 'reversed')
  }
})

test('without a gateway report that the payout failed after all, no return is confirmed, whatever else is odd', async (t) => {
  const { ledger, report } = await sent(t)
  await report('success')
  await decided(ledger, 'p-1', (payout) => anomaly(payout, 'APPLY', 'contradiction', 'late refusal', {}))
  await decided(ledger, 'p-1', (payout) => anomaly(payout, 'CALLBACK', 'amount-mismatch', '200', {}))
  assert.deepEqual(await reversePayout(REQUEST, ledger), { kind: 'no-word', anomalyIds: [] })
  await report('failed')
  const wrong = { ...REQUEST, anomalyId: '0f6b7a52-5e0c-5b8e-9d5e-6a1c2f1b7d10' }
  assert.equal((await reversePayout(wrong, ledger)).kind, 'no-word')
  assert.equal((await ledger.db.run(onResults, { topic: ledger.topics.results })).length, 1)
})
