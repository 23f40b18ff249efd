import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ACCOUNT, anomaliesOf, payoutsOf } from '../../../test/ledger.ts'
import { ABSENT, lostLedger, WHO, type WrittenMessage } from '../../../test/lost-ledger.ts'
import { paise } from '../../domain/money.ts'
import { become } from '../../domain/payout/transition.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { recordAnswers } from '../../stages/dispatch/record-answers.ts'
import { decided } from '../operations.fixture.ts'
import { resolvePayout } from '../resolve-payout.ts'
import { recallAnomalies } from './anomalies.ts'

const KEY = { merchantId: 'acme', payoutId: 'p' }
const OTHER = { amount: paise(7_000_00n) }

/** A ledger that loses `p`, beside a gateway that finds nothing. */
async function world(t: TestContext) {
  const lost = await lostLedger(t)
  const { ledger, deps } = lost
  const recall = (published: readonly WrittenMessage[]) => recallAnomalies(['acme'], lost.topics(published))
  return {
    ...{ ...lost, recall },
    anomalies: () => anomaliesOf(ledger),
    publishedAnomalies: async () =>
      (await lost.published()).filter(({ topic }) => topic === ledger.topics.anomalies),
    recoverFrom: (published: readonly WrittenMessage[]) =>
      lost.recover(published, ABSENT, {
        listed: async () => {
          await recall(published)
        },
      }),
    /** The answer to the first attempt, which comes late. */
    async accept(leaseUntil: number) {
      const order = { agentpayOrderId: 'AP1', fee: null, status: 'processing', exchange: {} } as const
      const made = {
        ...KEY,
        attempt: 1,
        owner: 'me',
        leaseUntil,
        amount: paise(50_000_00n),
        keptFee: paise(0),
      }
      await recordAnswers([{ ...made, answer: { kind: 'accepted', ...order }, tell: false }], deps)
    },
    async resend() {
      const terms = { ...ACCOUNT, ...ACCOUNT.promises, deadlineMs: 60_000 }
      const again = { kind: 'resend', attempt: 1, confirmedAbsentBy: 'Meera of the gateway' } as const
      const resolution = { ...again, deadline: null, cancelRequest: null, terms }
      return (await resolvePayout({ ...KEY, ...WHO, resolution, shown: null }, ledger)).kind
    },
    stateOfP: async () =>
      (await payoutsOf(ledger))
        .filter(({ payoutId }) => payoutId === 'p')
        .map(({ state, reason }) => [state, reason]),
    sent: async () => (await lost.wave()).map(({ payoutId }) => payoutId),
  }
}

test('a payout that the answer to a query called paid while it was gone is not sent once its command is read again', async (t) => {
  const w = await world(t)
  await w.read()
  await w.wave()
  await w.lose()
  await w.read('other', OTHER)
  await w.answer('success')
  assert.deepEqual(await w.anomalies(), ['never-sent'])
  const published = await w.publishedAnomalies()
  await w.read()
  await w.recoverFrom(published)
  assert.deepEqual(await w.sent(), ['other'])
  assert.deepEqual(await w.stateOfP(), [['review', 'never-sent']])
})

test('a payout whose attempt was answered while it was gone waits for a person if its command is read after the recovery', async (t) => {
  const w = await world(t)
  await w.read()
  const [sent] = await w.wave()
  await w.lose()
  await w.read('other', OTHER)
  await w.accept(sent?.dueAt ?? assert.fail('nothing was sent'))
  assert.deepEqual(await w.anomalies(), ['never-sent'])
  await w.recoverFrom(await w.publishedAnomalies())
  await w.read()
  assert.deepEqual(await w.stateOfP(), [['review', 'never-sent']])
})

test('a payout that a callback called paid while it was gone is not sent after a recovery that reads the anomaly about that back', async (t) => {
  const w = await world(t)
  await w.send()
  await w.lose()
  await w.callBack()
  assert.deepEqual(await w.anomalies(), ['unknown-order'])
  const published = await w.publishedAnomalies()
  await w.lose()
  await w.read()
  await w.read('other', OTHER)
  await w.recoverFrom(published)
  assert.deepEqual(await w.sent(), ['other'])
  assert.deepEqual(await w.stateOfP(), [['review', 'order-shown']])
})

test('a recovery that lost nothing leaves a payout that a person sent again as it is', async (t) => {
  const w = await world(t)
  await w.send()
  await w.callBack({ agentpayOrderId: 'AP2', status: 'processing' })
  assert.deepEqual(await w.anomalies(), ['order-id-mismatch'])
  await decided(w.ledger, 'p', (before) => ({
    change: {
      ...{ before, after: become(before, 'review', { reason: 'expired' }) },
      ...{ source: 'CLOCK', exchange: null },
    },
  }))
  assert.equal(await w.resend(), 'resolved')
  await w.raise()
  assert.equal(await w.recall(await w.published()), 0)
  assert.deepEqual(await w.stateOfP(), [['queued', 'resent']])
})

test('an order besides counts for a payout whose command is read again after the anomaly about it came back', async (t) => {
  const { db, send, callBack, lose, ledger, recoverFrom, read } = await world(t)
  await send()
  await callBack({ agentpayOrderId: 'AP2', status: 'processing' })
  const published = (await lose()).filter(({ topic }) => topic === ledger.topics.anomalies)
  await recoverFrom(published)
  await read()
  assert.deepEqual(await db.run(besides, {}), [{ state: 'review', orderBesides: true }])
})

const besides = sql<object, { state: string; orderBesides: boolean }>`
  select state, order_besides from payouts where payout_id = 'p'`
