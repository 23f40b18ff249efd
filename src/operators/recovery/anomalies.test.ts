import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { WrittenMessage } from '../../../test/lost-ledger.ts'
import { outboxMessages } from '../../../test/outbox-messages.ts'
import { besideSandbox } from '../../../test/reconcile.ts'
import { DECISIONS } from '../../domain/decisions.ts'
import { anomalyId } from '../../domain/identifiers.ts'
import { QUERY_POLICY } from '../../domain/payout/payout.fixture.ts'
import type { Anomaly } from '../../domain/payout/payout.ts'
import { BEYOND } from '../../ledger/anomalies.ts'
import { storeDecisions } from '../../ledger/ledger.ts'
import type { TopicRecord } from '../../platform/kafka/records.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { acknowledgeAnomalies } from '../acknowledge.ts'
import { decided } from '../operations.fixture.ts'
import { reversePayout } from '../reversal.ts'
import { recallAnomalies } from './anomalies.ts'

const WHO = { by: 'asha', reason: 'bank statement' }
const REVERSE = { merchantId: 'acme', payoutId: 'p', anomalyId: null, shown: null, ...WHO }

const outbox = sql<
  object,
  WrittenMessage
>`select topic, key, event_id, value from ${outboxMessages} order by position, n`
const loseAnomalies = sql<object>`with gone as (delete from anomalies) delete from reversals`
const forgetMessages = sql<object>`delete from outbox`
const stored = sql<object, { anomalyId: string; kind: string; at: number; isOpen: boolean }>`
  select anomaly_id, kind, at, acknowledged_at is null as is_open from anomalies order by anomaly_id`

/** A payout that was paid and came back, as the gateway reported. */
async function world(t: TestContext) {
  const { ledger, db, codec, pay, ended, orderNo } = await besideSandbox(t)
  await pay('p')
  const { report } = await ended(orderNo('p'))
  await decided(ledger, 'p', (payout, now) =>
    DECISIONS.applyEvidence(
      payout,
      { ...report, status: 'failed', utr: null },
      'CALLBACK',
      QUERY_POLICY,
      now,
    ),
  )
  const published: WrittenMessage[] = []
  return {
    ...{ ledger, db },
    stored: () => db.run(stored, {}),
    published: () => db.run(outbox, {}),
    async lose(...statements: (typeof loseAnomalies)[]) {
      published.push(...(await db.run(outbox, {})))
      for (const each of [...statements, forgetMessages]) await db.run(each, {})
    },
    recall: (merchantIds = ['acme']) =>
      recallAnomalies(merchantIds, {
        ...{ ledger, codec },
        async readTopic(topic, onRecord) {
          for (const { key, value } of published.filter((each) => each.topic === topic))
            await onRecord({ key: Buffer.from(key), value } as TopicRecord)
        },
      }),
  }
}

test('a recovery restores the anomaly that the money of a paid payout came back, and the operator can confirm the return by it', async (t) => {
  const lost = await world(t)
  const [before] = await lost.stored()
  assert.equal((await reversePayout(REVERSE, lost.ledger)).kind, 'reversed')
  const reversal = (await lost.published()).at(-1)
  await lost.lose(loseAnomalies)
  assert.equal((await reversePayout(REVERSE, lost.ledger)).kind, 'no-word')
  assert.equal(await lost.recall(), 1)
  assert.deepEqual(await lost.stored(), [{ ...before, isOpen: true }])
  assert.deepEqual(await lost.published(), [])
  assert.equal((await reversePayout(REVERSE, lost.ledger)).kind, 'reversed')
  assert.deepEqual(
    (await lost.published()).map(({ eventId }) => eventId),
    [reversal?.eventId],
  )
})

test('a report against the end of a failed payout counts again', async (t) => {
  const lost = await world(t)
  await lost.db.run(failUnpaid, {})
  await decided(lost.ledger, 'p', (payout) => {
    const { merchantId, payoutId, orderNo } = payout
    const said = { kind: 'contradiction', detail: 'it is paid (success)', source: 'QUERY' } as const
    return { anomaly: { merchantId, payoutId, orderNo, ...said, exchange: null } }
  })
  assert.deepEqual(await lost.db.run(saidOtherwise, {}), [{ saidOtherwise: 'open' }])
  await lost.lose(loseAnomalies)
  await lost.db.run(failUnpaid, {})
  await lost.recall()
  assert.deepEqual(await lost.db.run(saidOtherwise, {}), [{ saidOtherwise: 'open' }])
})

const failUnpaid = sql<object>`update payouts set state = 'failed', said_otherwise = null`
const saidOtherwise = sql<object, { saidOtherwise: string | null }>`select said_otherwise from payouts`

test('anomalies in the ledger stay as they are, acknowledged or not, and nothing is read back of other merchants', async (t) => {
  const lost = await world(t)
  const [{ anomalyId: id } = { anomalyId: '' }] = await lost.stored()
  await acknowledgeAnomalies({ merchantId: 'acme', anomalyIds: [id], ...WHO }, lost.db)
  await lost.lose()
  assert.equal(await lost.recall(), 0)
  assert.deepEqual(
    (await lost.stored()).map(({ isOpen }) => isOpen),
    [false],
  )
  await lost.lose(loseAnomalies)
  assert.equal(await lost.recall(['bolt']), 0)
})

test('an anomaly about an order or a payin keeps its id, and one that only counts others is left out', async (t) => {
  const lost = await world(t)
  const about: Anomaly = {
    ...{ merchantId: 'acme', payoutId: null, orderNo: 'C7', kind: 'contradiction', detail: 'failed' },
    ...{ source: 'QUERY', exchange: null },
  }
  const counting = { ...about, detail: BEYOND }
  await lost.db.transaction('test', (tx) =>
    storeDecisions(tx, lost.ledger, [{ anomaly: about }, { anomaly: counting }]),
  )
  await lost.lose(loseAnomalies)
  assert.equal(await lost.recall(), 2)
  const ids = (await lost.stored()).map(({ anomalyId }) => anomalyId)
  assert.ok(ids.includes(anomalyId(about)) && !ids.includes(anomalyId(counting)))
})
