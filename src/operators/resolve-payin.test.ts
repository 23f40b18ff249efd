import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ACCOUNT, anomaliesOf, oneWaits, within } from '../../test/ledger.ts'
import { brokenPayins, outboxOf, POLICY, payinLedger, report, storedPayins } from '../../test/payins.ts'
import type { PayinReport } from '../domain/payin/gateway-answers.ts'
import type { Payin } from '../domain/payin/payin.ts'
import { recordNothingFound } from '../domain/payin/record-query-answer.ts'
import type { PayinResolution } from '../domain/payin/resolve.ts'
import { applyPayinEvidenceBatch } from '../payins/outcomes.ts'
import { lockPayins, storePayins } from '../payins/store.ts'
import { systemClock } from '../platform/running/clock.ts'
import { eventually } from '../platform/running/eventually.fixture.ts'
import { previewResolve, resolvePayin } from './resolve-payin.ts'

const WHO = { by: 'asha', reason: 'the bank says so' }
const PAID: PayinResolution = { kind: 'paid', utr: '632611200007' }
const FAILED: PayinResolution = { kind: 'failed' }

/** A ledger with payins that the gateway named once and then no longer knew. */
async function withReviews(t: TestContext) {
  const beside = await payinLedger(t)
  const { ledger, codec, outcomeDeps, create } = beside
  const inReview = async (idempotencyKey: string): Promise<Payin> => {
    const payin = await create(idempotencyKey)
    const now = systemClock.now()
    for (let absences = 0; absences <= POLICY.confirmations; absences++)
      await ledger.db.transaction('test', async (tx) => {
        const [locked] = await lockPayins(tx, [payin])
        assert.ok(locked)
        const asked = { askedAt: now + absences * POLICY.graceMs, presence: true }
        const absence = { kind: 'not-found', exchange: { note: String(absences) } } as const
        await storePayins(tx, ledger, [recordNothingFound(locked, absence, asked, POLICY, tx.now)])
      })
    return payin
  }
  const decide = (payin: Payin, resolution: PayinResolution) =>
    resolvePayin({ merchantId: 'acme', payinId: payin.payinId, ...WHO, resolution, shown: null }, ledger)
  const hear = (payin: Payin, status: PayinReport['status']) =>
    applyPayinEvidenceBatch(
      [
        {
          ...{
            merchantId: 'acme',
            payinId: payin.payinId,
            source: 'QUERY',
            queryPolicy: POLICY,
            ...ACCOUNT,
          },
          ...{ askedAt: systemClock.now(), presence: true },
          answer: { kind: 'known', report: report(payin, status) },
        },
      ],
      outcomeDeps,
    )
  const published = async () => {
    const rows = await ledger.db.run(outboxOf, { topic: ledger.topics.payinResults })
    return Promise.all(
      rows.map(async ({ value }) => {
        const decoded = await codec.decode(value)
        assert.ok(decoded.kind === 'decoded')
        const { status, utr, reason, evidence, version } = decoded.value as Record<string, unknown>
        return [status, utr, reason, evidence, version]
      }),
    )
  }
  return { ...beside, inReview, decide, hear, published }
}

test('a person ends a payin in review as paid or as failed, and payoutd publishes that', async (t) => {
  const { ledger, inReview, decide, published } = await withReviews(t)
  const [first, second] = [await inReview('order-1'), await inReview('order-2')]
  const request = { merchantId: 'acme', payinId: first.payinId, ...WHO, resolution: PAID, shown: null }
  assert.equal((await previewResolve(request, ledger.db)).kind, 'resolved')
  assert.deepEqual(await published(), [])
  for (const [payin, resolution] of [
    [first, PAID],
    [second, FAILED],
  ] as const)
    assert.equal((await decide(payin, resolution)).kind, 'resolved')
  assert.deepEqual(await published(), [
    ['PAID', '632611200007', null, 'OPERATOR', 4],
    ['FAILED', null, 'the bank says so', 'OPERATOR', 4],
  ])
  assert.deepEqual(await ledger.db.run(brokenPayins, {}), [])
})

test('a decision applies to what was shown: it does not apply to a payin that moved meanwhile', async (t) => {
  const { ledger, inReview } = await withReviews(t)
  const payin = await inReview('order-1')
  const request = { merchantId: 'acme', payinId: payin.payinId, ...WHO, resolution: PAID, shown: null }
  const would = await previewResolve(request, ledger.db)
  assert.ok(would.kind === 'resolved')
  const { shown } = would
  for (const earlier of [
    { ...shown, version: shown.version - 1 },
    { ...shown, evidenceCount: shown.evidenceCount - 1 },
  ])
    assert.deepEqual(await resolvePayin({ ...request, shown: earlier }, ledger), { kind: 'moved' })
  assert.equal((await resolvePayin({ ...request, shown }, ledger)).kind, 'resolved')
})

test('of two payins that are called paid with one UTR at the same moment, one is', async (t) => {
  const { ledger, inReview } = await withReviews(t)
  const [first, second] = [await inReview('order-1'), await inReview('order-2')]
  const asked = { ...WHO, resolution: PAID, shown: null }
  let late: ReturnType<typeof resolvePayin> | undefined
  await ledger.db.transaction('test', async (tx) => {
    await resolvePayin({ ...first, ...asked }, within(ledger, tx))
    late = resolvePayin({ ...second, ...asked }, ledger)
    await eventually('the second waits', () => oneWaits(ledger))
  })
  assert.equal((await late)?.kind, 'utr-taken')
})

test('a person decides only about payins in review, and a UTR belongs to one payin', async (t) => {
  const { ledger, create, inReview, decide, published } = await withReviews(t)
  assert.deepEqual(await decide(await create('order-1'), FAILED), { kind: 'not-in-review', state: 'open' })
  const [first, second] = [await inReview('order-2'), await inReview('order-3')]
  await decide(first, PAID)
  assert.deepEqual(await decide(first, FAILED), { kind: 'not-in-review', state: 'paid' })
  const { payinId } = first
  assert.deepEqual(await decide(second, PAID), {
    ...{ kind: 'utr-taken', utr: PAID.utr },
    takenBy: { merchantId: 'acme', payinId },
  })
  assert.deepEqual(await decide({ ...first, payinId: 'CNOBODY' }, PAID), { kind: 'unknown' })
  assert.equal((await published()).length, 1)
  const states = (await ledger.db.run(storedPayins, {})).map(({ state }) => state)
  assert.deepEqual(states, ['open', 'paid', 'review'])
})

test('the gateway can still settle a payin that a person called failed, and a report against paid is an anomaly', async (t) => {
  const { ledger, inReview, decide, hear, published } = await withReviews(t)
  const [failed, paid] = [await inReview('order-1'), await inReview('order-2')]
  await decide(failed, FAILED)
  await decide(paid, PAID)
  await hear(failed, 'paid')
  await hear(paid, 'failed')
  await hear(paid, 'paid')
  assert.deepEqual((await published()).slice(2), [['PAID', '632611200001', null, 'QUERY', 5]])
  assert.deepEqual((await anomaliesOf(ledger)).toSorted(), ['contradiction', 'utr-mismatch'])
})
