import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { accepted, payoutsOf, type StoredPayout, testLedger } from '../../test/ledger.ts'
import { command } from '../domain/commands/command.fixture.ts'
import type { Exchange, OrderReport } from '../domain/evidence.ts'
import { paise } from '../domain/money.ts'
import { applyEvidence } from '../domain/payout/apply-evidence.ts'
import { QUERY_POLICY } from '../domain/payout/payout.fixture.ts'
import { recordApply } from '../domain/payout/record-apply-answer.ts'
import { recordAbsence, recordNoAnswer } from '../domain/payout/record-query-answer.ts'
import { MOST_OPEN } from '../ledger/anomalies.ts'
import { BEYOND_UNMOVED, MOST_UNMOVED } from '../ledger/evidence/repeats.ts'
import { decided, submit } from '../operators/operations.fixture.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { lastWordText, reviewText } from '../views/review-text.ts'
import { evidenceOf, lastWord, reviewCases } from './review.ts'

const POLICY = { ...QUERY_POLICY, confirmations: 3 }
const timedOut: Exchange = { request: { accountNo: '••••6789' }, note: 'ETIMEDOUT', tookMs: 30_000 }
const notFound: Exchange = {
  request: { mchOrderNo: 'PX' },
  response: { retCode: 'ORDER_NOT_FOUND' },
  httpStatus: 200,
}
const proxyPage: Exchange = {
  request: { mchOrderNo: 'PX' },
  response: { body: 'Bad Gateway' },
  httpStatus: 502,
}
const sinceEarlier = sql<{ payoutId: string }>`
  update history set at = at - interval '1 hour' where payout_id = ${'payoutId'}`

/** Each sent into a timeout; the gateway reports three times that it has no such order, so a person decides. */
async function provedAbsent(t: TestContext, ...payoutIds: string[]) {
  const { ledger, config } = await testLedger(t)
  await accepted(
    ledger,
    config,
    payoutIds.map((id) => command(id)),
  )
  for (const payoutId of payoutIds) {
    const decide = (make: Parameters<typeof decided>[2]) => decided(ledger, payoutId, make)
    await decide(submit)
    await decide((payout, now) =>
      recordApply(payout, 1, { kind: 'unknown', reason: 'timeout', exchange: timedOut }, POLICY, now),
    )
    for (let i = 0; i < 3; i++) {
      await decide((payout, now) =>
        recordAbsence(payout, notFound, { askedAt: now, presence: true }, POLICY, now),
      )
    }
  }
  const waiting = (merchantId: string, limit: number) =>
    reviewCases(ledger.db, { merchantId, limit, keys: config.sealing })
  return { ledger, waiting }
}

test('payouts in review are shown with all their evidence, the longest waiting first', async (t) => {
  const { ledger, waiting } = await provedAbsent(t, 'p-1', 'p-2')
  await ledger.db.run(sinceEarlier, { payoutId: 'p-2' })
  const cases = await waiting('acme', 10)
  assert.deepEqual(
    cases.map(({ payout, evidence }) => [payout.payoutId, payout.reason, evidence.history.length]),
    [
      ['p-2', 'proved-absent', 5],
      ['p-1', 'proved-absent', 5],
    ],
  )
  const [first] = cases
  assert.ok(first)
  assert.equal(first.payout.since, first.evidence.history.at(-1)?.at)
  assert.deepEqual(first.evidence.history.at(-1)?.exchange, notFound)
  assert.deepEqual(
    (await waiting('acme', 1)).map(({ payout }) => payout.payoutId),
    ['p-2'],
  )
  assert.deepEqual(await waiting('bolt', 10), [])
})

test('the text of a payout in review shows why, since when, and what was reported; repeats are one line', async (t) => {
  const { waiting } = await provedAbsent(t, 'p-1')
  const [found] = await waiting('acme', 10)
  assert.ok(found)
  const text = reviewText(found, found.payout.since + 3 * 3_600_000)
  assert.match(text, /^payout p-1 of acme, in review for 3 h, since \d{4}-/)
  assert.match(text, /\n {2}₹50,000\.00 to account ••••6789, IFSC HDFC0001234; batch november, row 1\n/)
  assert.match(text, /\n {2}proved-absent: the gateway says that it has no such order/)
  assert.match(text, /\n {2}order P[A-Z2-7]{29}, 1 attempt, deadline \d{4}-/)
  assert.match(text, /APPLY {5}→ unknown \(timeout\) {2}no answer: ETIMEDOUT\n/)
  assert.match(text, /QUERY {5}retCode=ORDER_NOT_FOUND {2}\(2 times, until \d{4}-/)
  assert.match(text, /QUERY {5}→ review \(proved-absent\) {2}retCode=ORDER_NOT_FOUND\n/)
  assert.match(
    text,
    /\n {2}decide with: payoutd payout resolve p-1 --paid --utr <UTR>, --failed --attempt 1 or --resend --attempt 1$/,
  )
  assert.equal(text.split('\n').length, 10)
})

test("the last report is the gateway's own latest one, even if it came in a callback that was an anomaly", async (t) => {
  const { ledger, waiting } = await provedAbsent(t, 'p-1')
  const evidence = async () => (await waiting('acme', 1))[0]?.evidence ?? assert.fail('none')
  const before = await evidence()
  assert.deepEqual(lastWord(before)?.exchange, notFound)
  assert.match(
    lastWordText(lastWord(before), before),
    /^the gateway last reported on it at \S+ \S+Z, by QUERY: retCode=ORDER_NOT_FOUND$/,
  )
  const request = { amount: '200', status: '2' }
  await decided(ledger, 'p-1', (payout, now) => {
    const report = { agentpayOrderId: 'AP1', status: 'success' as const, fee: null, utr: null }
    const said = { ...report, amount: null, errorMessage: null, mchOrderNo: payout.orderNo ?? '' }
    return applyEvidence(payout, { ...said, exchange: { request } }, 'CALLBACK', POLICY, now)
  })
  const after = await evidence()
  assert.deepEqual(lastWord(after)?.exchange, { request })
})

test('if too many reports arrived about an order, the last one is shown in full, or as not kept', async (t) => {
  const { ledger } = await provedAbsent(t, 'p-1')
  const say = (source: 'QUERY' | 'CALLBACK', facts: Partial<OrderReport>) =>
    decided(ledger, 'p-1', (payout, now) => {
      const nothing = { agentpayOrderId: null, fee: null, utr: null, errorMessage: null, exchange: {} }
      const order = { mchOrderNo: payout.orderNo ?? '', amount: payout.amount, ...nothing }
      return applyEvidence(payout, { ...order, status: 'processing', ...facts }, source, POLICY, now)
    })
  const last = async () => {
    const [{ orderNo }] = (await payoutsOf(ledger)) as [StoredPayout]
    return lastWord(await evidenceOf(ledger.db, { merchantId: 'acme', payoutId: 'p-1', orderNo }))?.exchange
  }
  for (let n = 0; n <= MOST_OPEN; n++) await say('CALLBACK', { amount: paise(BigInt(n)) })
  const words = { request: { n: 'the last' } }
  await say('CALLBACK', { amount: paise(4_900_000n), exchange: words })
  assert.deepEqual(await last(), words)
  for (let n = 0; n <= MOST_UNMOVED + 1; n++)
    await say('QUERY', { exchange: { response: { retCode: '0', n: String(n) } } })
  assert.deepEqual(await last(), BEYOND_UNMOVED)
})

test('a timeout and the page of a proxy are no report of the gateway', async (t) => {
  const { ledger, config } = await testLedger(t)
  await accepted(ledger, config, [command('p-1', { deadline: null })])
  await decided(ledger, 'p-1', submit)
  await decided(ledger, 'p-1', (payout, now) =>
    recordApply(payout, 1, { kind: 'unknown', reason: 'timeout', exchange: timedOut }, POLICY, now),
  )
  await decided(ledger, 'p-1', (payout, now) => recordNoAnswer(payout, proxyPage, POLICY, now))
  await decided(ledger, 'p-1', (payout, now) =>
    recordAbsence({ ...payout, notFoundCount: 2 }, timedOut, { askedAt: now, presence: true }, POLICY, now),
  )
  const [found] = await reviewCases(ledger.db, { merchantId: 'acme', limit: 1, keys: config.sealing })
  assert.ok(found)
  assert.equal(lastWord(found.evidence), null)
  assert.match(lastWordText(null, found.evidence), /^the gateway has never reported on it/)
})
