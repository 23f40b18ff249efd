import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { ACCOUNT, anomaliesOf, payoutsOf } from '../../../test/ledger.ts'
import type { WrittenMessage } from '../../../test/lost-ledger.ts'
import type { OrderReport } from '../../domain/evidence.ts'
import { orderNumber } from '../../domain/identifiers.ts'
import { paise } from '../../domain/money.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import { topicKey } from '../../messages/messages.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { type ApplyOutcome, recordAnswers } from '../../stages/dispatch/record-answers.ts'
import { applyEvidenceBatch, type PayoutEvidence } from '../../stages/outcomes/outcomes.ts'
import { type SetBack, setBackLedger } from './set-back.fixture.ts'

const PAYOUTS = 60
const IDS = Array.from({ length: PAYOUTS }, (_, i) => `p${i}`)
/** Each pays another amount, or intake would hold them as duplicates. */
const amountOf = (id: string) => paise(1_000_00n + BigInt(IDS.indexOf(id)) * 100n)
const isPaid = (id: string) => IDS.indexOf(id) % 2 === 0

/** What the gateway says of an order that has ended. */
function reportOf(id: string): OrderReport {
  const status = isPaid(id) ? 'success' : 'failed'
  const utr = isPaid(id) ? `6326112${String(IDS.indexOf(id)).padStart(5, '0')}` : null
  const names = { mchOrderNo: orderNumber('acme', id, 1), agentpayOrderId: `AP${id}` }
  return { ...names, status, utr, amount: amountOf(id), fee: null, errorMessage: null, exchange: {} }
}

const answerTo = ({ payoutId, dueAt, amount }: Payout): ApplyOutcome => ({
  ...{ merchantId: 'acme', payoutId, attempt: 1, owner: 'me', leaseUntil: dueAt as number, amount },
  keptFee: paise(0),
  answer: {
    ...{ kind: 'accepted', agentpayOrderId: `AP${payoutId}`, fee: null, status: 'processing' },
    exchange: {},
  },
  tell: false,
})

const callbackOf = (id: string): PayoutEvidence => ({
  ...{ merchantId: 'acme', mchOrderNo: orderNumber('acme', id, 1), source: 'CALLBACK' },
  report: reportOf(id),
  accountIds: [ACCOUNT.accountId],
})

/** Dispatch, and two transactions at a time of answers and of callbacks, until every payout has ended. */
async function runSideBySide({ wave, deps }: SetBack): Promise<void> {
  const answers: ApplyOutcome[] = []
  const callbacks: PayoutEvidence[] = []
  let ended = 0
  const dispatch = async () => {
    for (let sent = 0; sent < PAYOUTS; ) {
      const payouts = await wave()
      sent += payouts.length
      payouts.forEach((payout, i) => void callBack(payout, i))
      await delay(2)
    }
  }
  const callBack = async (payout: Payout, i: number) => {
    await delay(i % 5)
    answers.push(answerTo(payout))
    await delay(i % 2)
    callbacks.push(callbackOf(payout.payoutId))
  }
  const store = async <Item>(queue: Item[], work: (items: Item[]) => Promise<unknown[]>, isEnd = false) => {
    while (ended < PAYOUTS) {
      const some = queue.splice(0, 8)
      if (some.length === 0) await delay(1)
      else await work(some)
      if (isEnd) ended += some.length
    }
  }
  const record = (some: ApplyOutcome[]) => recordAnswers(some, deps)
  const settle = (some: PayoutEvidence[]) => applyEvidenceBatch(some, deps)
  await Promise.all([
    dispatch(),
    ...[1, 2].map(() => store(answers, record)),
    ...[1, 2].map(() => store(callbacks, settle, true)),
  ])
}

const outOfOrder = sql<object, { payoutId: string }>`
  select a.payout_id from history a join history b
    on (a.merchant_id, a.payout_id, a.version + 1) = (b.merchant_id, b.payout_id, b.version)
  where b.published_at < a.published_at`

for (const [what, events, results] of [
  ['everything', 1, 1],
  ['the first half', 0.5, 0.5],
  ['more of the results', 0.6, 1],
  ['more of the events', 1, 0.5],
] as const)
  test(`after one loss, every payout of stages that ran side by side ends once, as the gateway has it: Kafka has ${what}`, async (t) => {
    const lost = await setBackLedger(t)
    const { topics } = lost.ledger
    for (const id of IDS) await lost.read(id, { amount: amountOf(id) })
    await lost.backUp()
    await runSideBySide(lost)
    assert.deepEqual(await lost.db.run(outOfOrder, {}), [])
    const kept: WrittenMessage[] = []
    await lost.lose((message, at, all) => {
      const ofTopic = (each: WrittenMessage) => each.topic === message.topic
      const place = all.slice(0, at).filter(ofTopic).length
      const share = message.topic === topics.results ? results : events
      const isKept = place < all.filter(ofTopic).length * share
      if (isKept) kept.push(message)
      return isKept
    })
    await lost.restoreBackUp()
    const answers = new Map(IDS.map((id) => [orderNumber('acme', id, 1), reportOf(id)]))
    await lost.recover((mchOrderNo) => {
      const report = answers.get(mchOrderNo) ?? assert.fail(`${mchOrderNo} is no order`)
      return { kind: 'found', report }
    })
    const isResult = ({ topic }: WrittenMessage) => topic === topics.results
    const told = new Set(kept.filter(isResult).map(({ key }) => key))
    const ends = [...kept, ...(await lost.published())].filter(isResult).map(({ key }) => key)
    for (const { payoutId, state, attempt } of await payoutsOf(lost.ledger)) {
      const key = topicKey('acme', payoutId)
      const end = isPaid(payoutId) ? 'paid' : 'failed'
      // A failure that nobody published may be that of one attempt of several.
      const isKnown = isPaid(payoutId) || told.has(key) || state !== 'review'
      assert.deepEqual([payoutId, state, attempt], [payoutId, isKnown ? end : 'review', 1])
      assert.equal(ends.filter((each) => each === key).length, isKnown ? 1 : 0, `results of ${payoutId}`)
    }
    assert.deepEqual(await lost.wave(), [])
    assert.deepEqual(await anomaliesOf(lost.ledger), [])
  })
