import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { anomaliesOf, brokenVersions } from '../../../test/ledger.ts'
import type { WrittenMessage } from '../../../test/lost-ledger.ts'
import { outboxMessages } from '../../../test/outbox-messages.ts'
import { AMOUNT, besideSandbox } from '../../../test/reconcile.ts'
import { DECISIONS } from '../../domain/decisions.ts'
import { orderNumber } from '../../domain/identifiers.ts'
import { paise } from '../../domain/money.ts'
import { QUERY_POLICY } from '../../domain/payout/payout.fixture.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import { type Resolution, resolve } from '../../domain/payout/resolve.ts'
import { become, change } from '../../domain/payout/transition.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { TopicRecord } from '../../platform/kafka/records.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { findAnomaly } from '../../queries/anomalies.ts'
import { anomalyText } from '../../views/anomaly-text.ts'
import { accept, decided } from '../operations.fixture.ts'
import { resolvePayout } from '../resolve-payout.ts'
import { reversePayout } from '../reversal.ts'
import { readBackPublished } from './read-back-published.ts'
import { fence, listOpen } from './recovery.ts'

const POLICY = { ...QUERY_POLICY, confirmations: 2, duplicatesRefused: true }
const WHO = { by: 'asha', reason: 'disk lost' }
const UTR = '632611200777'

const outbox = sql<
  object,
  WrittenMessage
>`select topic, key, event_id, value from ${outboxMessages} order by position, n`
/** Back to when the gateway had accepted it. */
const setBack = sql<object>`
  with lost as (delete from attempts where attempt > 1)
  update payouts set state = 'processing', version = 3, attempt = 1, reason = null, utr = null, fee = 500, unreported = false, due_at = now()`
const forgetNumber = sql<object>`update payouts set agentpay_order_id = null`
const asIfEndedAtOnce = sql<object>`update payouts set state = 'paid', version = 2, due_at = null`
const forgetHistory = sql<object>`delete from history where version > 3`
const current = sql<
  object,
  Pick<Payout, 'state' | 'version' | 'utr'>
>`select state, version, utr from payouts`

const contradictions = sql<
  object,
  { anomalyId: string }
>`select anomaly_id from anomalies where kind = 'contradiction'`
const known = sql<object, Pick<Payout, 'agentpayOrderId' | 'fee'>>`select agentpay_order_id, fee from payouts`

/** A payout that a person ended, or that `end` changed otherwise; that was published and then lost. */
async function world(t: TestContext, end: Resolution | ((ledger: Ledger) => Promise<unknown>)) {
  const { ledger, db, codec, send } = await besideSandbox(t)
  const published: WrittenMessage[] = []
  const resolved = (resolution: Resolution) =>
    decided(ledger, 'p', (payout, now) => {
      const decision = resolve(payout, resolution, WHO, now)
      return 'change' in decision ? decision : assert.fail(decision.refused.kind)
    })
  await send('p')
  await decided(ledger, 'p', accept)
  await decided(ledger, 'p', (p) => change(p, become(p, 'review', { reason: 'expired' }), 'CLOCK', {}))
  await (typeof end === 'function' ? end(ledger) : resolved(end))
  published.push(...(await db.run(outbox, {})))
  await db.run(setBack, {})
  await db.run(forgetHistory, {})

  return {
    ...{ ledger, db, resolved },
    goOn: () =>
      decided(ledger, 'p', (p) => change(p, become(p, 'review', { reason: 'expired' }), 'CLOCK', {})),
    callBack: (status: 'success' | 'failed' | 'processing', source: 'CALLBACK' | 'QUERY' = 'CALLBACK') =>
      decided(ledger, 'p', (payout, now) => {
        const { agentpayOrderId } = payout
        const [utr, errorMessage] = status === 'success' ? ['N632611200888', null] : [null, 'closed']
        const order = { mchOrderNo: orderNumber('acme', 'p', 1), agentpayOrderId, amount: paise(AMOUNT) }
        const report = { ...order, status, fee: null, utr, errorMessage, exchange: {} }
        return DECISIONS.applyEvidence(payout, report, source, POLICY, now)
      }),
    /** `isEndTold`: the end was published before the loss. */
    async recover(meanwhile: () => Promise<void> = () => Promise.resolve(), isEndTold = true) {
      const [raised] = await fence(db, [{ merchantId: 'acme', feeEstimate: 0n }], WHO)
      await listOpen(db, raised ?? assert.fail())
      await meanwhile()
      const events = published.filter(({ topic }) => topic === ledger.topics.events)
      const all = isEndTold ? [...published, ...(await db.run(outbox, {}))] : events.slice(0, -1)
      await readBackPublished(['acme'], {
        ...{ ledger, codec },
        async readTopic(topic, onRecord) {
          for (const { key, value } of all.filter((each) => each.topic === topic))
            await onRecord({ key: Buffer.from(key), value } as TopicRecord)
        },
      })
    },
    now: async () => (await db.run(current, {}))[0],
    known: async () => (await db.run(known, {}))[0],
    /** The results, one per event id. */
    async results() {
      const told = new Map<string, string>()
      for (const { topic, eventId, value } of [...published, ...(await db.run(outbox, {}))]) {
        if (topic !== ledger.topics.results) continue
        const decoded = await codec.decode(value)
        assert.ok(decoded.kind === 'decoded')
        const { version, status } = decoded.value as { version: number; status: string }
        told.set(eventId, `${status} v${version}`)
      }
      return [...told.values()]
    },
  }
}

const CASES = [
  { said: { kind: 'paid', utr: UTR }, reported: 'failed', told: ['PAID v5', 'FAILED v4'] },
  { said: { kind: 'failed' }, reported: 'success', told: ['FAILED v5', 'PAID v4'] },
] as const

for (const { said, reported, told } of CASES) {
  test(`${said.kind} was published and lost, and then the gateway reported ${reported}: a person decides, above all published versions`, async (t) => {
    const lost = await world(t, said)
    await lost.callBack(reported)
    assert.deepEqual(await lost.results(), told)
    await lost.recover()
    assert.deepEqual(await lost.now(), { state: 'review', version: 6, utr: null })
    assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
    assert.deepEqual(await brokenVersions(lost.ledger), [])
    await lost.resolved(said)
    assert.deepEqual(await lost.results(), [...told, `${said.kind.toUpperCase()} v7`])
    await lost.recover()
    assert.deepEqual((await lost.now())?.version, 7)
    assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
  })
}

test('another end under the event id of a published end is still reported', async (t) => {
  const lost = await world(t, { kind: 'paid', utr: UTR })
  await lost.goOn()
  await lost.callBack('failed')
  assert.deepEqual(await lost.results(), ['FAILED v5'])
  await lost.recover()
  assert.deepEqual(await lost.now(), { state: 'review', version: 6, utr: null })
  assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
})

test('a person who decides against the last published end is not asked again by the next recovery', async (t) => {
  const lost = await world(t, { kind: 'paid', utr: UTR })
  await lost.callBack('failed')
  await lost.recover()
  await lost.resolved({ kind: 'failed' })
  await lost.recover()
  assert.deepEqual(await lost.now(), { state: 'failed', version: 7, utr: null })
  assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
})

test('a failure that the gateway reports again does not end a payout in review', async (t) => {
  const lost = await world(t, { kind: 'paid', utr: UTR })
  await lost.callBack('failed')
  await lost.recover()
  await lost.callBack('failed')
  assert.equal((await lost.now())?.state, 'review')
})

test('a late report that a payout is under way does not take it out of review', async (t) => {
  const lost = await world(t, { kind: 'paid', utr: UTR })
  await lost.callBack('failed')
  await lost.recover()
  await lost.callBack('processing')
  for (let asked = 0; asked <= POLICY.confirmations; asked++) await lost.callBack('failed', 'QUERY')
  assert.deepEqual(await lost.now(), { state: 'review', version: 6, utr: null })
  await lost.callBack('success')
  assert.equal((await lost.now())?.state, 'paid')
})

test("a payout that ends while it is on the recovery's list is compared too", async (t) => {
  const lost = await world(t, { kind: 'failed' })
  await lost.recover(() => lost.callBack('success'))
  assert.deepEqual(await lost.now(), { state: 'review', version: 6, utr: null })
})

test("the same end above the ledger's version is taken over, so that the next message has an event id of its own", async (t) => {
  const lost = await world(t, { kind: 'paid', utr: 'n632611200888' })
  await lost.callBack('success')
  assert.deepEqual(await lost.results(), ['PAID v5', 'PAID v4'])
  await lost.recover()
  assert.deepEqual(await lost.now(), { state: 'paid', version: 5, utr: 'N632611200888' })
  assert.deepEqual(await anomaliesOf(lost.ledger), [])
  assert.deepEqual(await brokenVersions(lost.ledger), [])
  const before = await lost.known()
  await lost.recover()
  assert.deepEqual(await lost.known(), before)
})

test('a payout that ended below a version under which something else was published continues above that version', async (t) => {
  const lost = await world(t, { kind: 'failed' })
  await lost.db.run(asIfEndedAtOnce, {})
  await lost.recover(undefined, false)
  assert.deepEqual(await lost.now(), { state: 'paid', version: 4, utr: null })
  assert.deepEqual(await anomaliesOf(lost.ledger), [])
})

test('another UTR than was published as paid is an anomaly, and the payout stays paid', async (t) => {
  const lost = await world(t, { kind: 'paid', utr: UTR })
  await lost.callBack('success')
  await lost.recover()
  assert.deepEqual(await lost.now(), { state: 'paid', version: 5, utr: 'N632611200888' })
  assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
  await lost.recover()
  assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
})

test('another UTR under the event id of a published payment is an anomaly too, once', async (t) => {
  const lost = await world(t, { kind: 'paid', utr: UTR })
  await lost.goOn()
  await lost.callBack('success')
  assert.deepEqual(await lost.results(), ['PAID v5'])
  await lost.recover()
  assert.deepEqual(await lost.now(), { state: 'paid', version: 5, utr: 'N632611200888' })
  assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
  await lost.recover()
  assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
})

test('a decision for the published payment after two ends also takes its fee and number', async (t) => {
  const lost = await world(t, { kind: 'paid', utr: UTR })
  const { agentpayOrderId } = (await lost.known()) ?? assert.fail()
  await lost.callBack('failed')
  await lost.db.run(forgetNumber, {})
  await lost.recover()
  await lost.resolved({ kind: 'paid', utr: UTR })
  assert.deepEqual(await lost.known(), { agentpayOrderId, fee: 500n })
})

test('once a person has called a failed payout paid, a report that it was paid does not confirm a return', async (t) => {
  const lost = await world(t, { kind: 'paid', utr: UTR })
  await lost.callBack('failed')
  await lost.callBack('success')
  await lost.recover()
  await lost.resolved({ kind: 'paid', utr: UTR })
  const key = { merchantId: 'acme', payoutId: 'p', ...WHO }
  const reversed = await reversePayout({ ...key, anomalyId: null, shown: null }, lost.ledger)
  assert.deepEqual(reversed, { kind: 'no-word', anomalyIds: [] })
  const request = { ...key, resolution: { kind: 'failed' as const }, shown: null }
  const again = await resolvePayout(request, lost.ledger)
  assert.deepEqual(again.kind === 'refused' && again.contradictedBy, [])
  const [word] = await lost.db.run(contradictions, {})
  const told = await findAnomaly(lost.db, 'acme', word?.anomalyId ?? assert.fail())
  assert.match(
    anomalyText(told ?? assert.fail()),
    /\n {2}once you have looked into it, run payoutd anomaly acknowledge /,
  )
})

const tries = sql<object, { attempt: number; doubted: boolean }>`select attempt, doubted from payouts`

test('a payout that a person ended after a failover, and that was sent once more before it, goes to review again', async (t) => {
  const lost = await world(t, async (ledger) => {
    const wait = { reason: 'resent', ready: true }
    await decided(ledger, 'p', (p) => change(p, become(p, 'queued', wait), 'OPERATOR', {}))
    await decided(ledger, 'p', (p) => change(p, become(p, 'submitting', { attempt: 2 }), 'CLOCK', {}))
    await decided(ledger, 'p', accept)
  })
  await lost.goOn()
  await lost.recover(() => lost.resolved({ kind: 'failed' }))
  assert.deepEqual(await lost.now(), { state: 'review', version: 8, utr: null })
  assert.deepEqual(await lost.db.run(tries, {}), [{ attempt: 2, doubted: true }])
  assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
  assert.deepEqual(await brokenVersions(lost.ledger), [])
  await lost.resolved({ kind: 'failed' })
  await lost.recover()
  assert.deepEqual(await lost.now(), { state: 'failed', version: 9, utr: null })
  assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
})

test('a payout that a person called failed, though it was published as alive in review and that was lost, goes to review again', async (t) => {
  const lost = await world(t, (ledger) =>
    decided(ledger, 'p', (p) => change(p, become(p, 'processing', {}), 'QUERY', {})),
  )
  await lost.goOn()
  await lost.resolved({ kind: 'failed' })
  await lost.recover()
  assert.deepEqual(await lost.now(), { state: 'review', version: 6, utr: null })
  assert.deepEqual(await lost.db.run(tries, {}), [{ attempt: 1, doubted: true }])
  assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
})
