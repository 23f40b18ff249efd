import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApplyAnswer } from '../gateway-answers.ts'
import { paise } from '../money.ts'
import { inconclusive, type QueryPolicy } from './next-query.ts'
import { QUERY_POLICY, sentPayout } from './payout.fixture.ts'
import type { Decision, Payout } from './payout.ts'
import { recordApply } from './record-apply-answer.ts'
import { recordAbsence } from './record-query-answer.ts'
import { resolve } from './resolve.ts'
import { withdrawnPromise } from './send-again.ts'
import { become } from './transition.ts'

const NOW = Date.UTC(2026, 10, 30, 9)
const HOUR = 3_600_000
const POLICY: QueryPolicy = {
  ...QUERY_POLICY,
  queryAfterMs: [3_000],
  graceMs: 5_000,
  notPaidCodes: ['TOO_FAST', 'BALANCE_SHORT', 'GONE_FROM_THE_LIST'],
  duplicatesRefused: true,
}
const exchange = {}
const REFUSES = { duplicatesRefused: true, notPaidCodes: ['TOO_FAST', 'BALANCE_SHORT'] }
const MAY_PAY_TWICE = { ...REFUSES, duplicatesRefused: false }
const sent = sentPayout({
  ...{ payoutId: 'p', batchId: null, amount: paise(100n), deadline: NOW + 72 * HOUR, dueAt: NOW },
})
const after = (decision: Decision): Payout => {
  assert.ok('change' in decision)
  return decision.change.after
}
const answered = (payout: Payout, answer: ApplyAnswer) =>
  after(recordApply(payout, payout.attempt, answer, POLICY, NOW))
const asked = { askedAt: NOW + HOUR, presence: true }
const notFoundAfter = (payout: Payout, answer: ApplyAnswer, queryPolicy = POLICY) =>
  after(recordAbsence(answered(payout, answer), exchange, asked, queryPolicy, NOW + HOUR))
const absent = (payout: Payout, queryPolicy = POLICY) =>
  notFoundAfter(payout, { kind: 'unknown', reason: 'timeout', exchange }, queryPolicy)
const turnedAway = (payout: Payout, code: string) =>
  notFoundAfter(payout, { kind: 'retry-later', code, message: '', balanceShort: false, exchange })
const sentAgain = (payout: Payout) =>
  become(payout, 'submitting', { attempt: payout.attempt + 1, accountId: 'here' })
const resent = (payout: Payout, confirmedAbsentBy: string | null, promises = REFUSES) => {
  const { attempt } = payout
  const terms = { ...promises, accountId: 'here', settingsHash: 'h', deadlineMs: HOUR }
  const resolution = {
    kind: 'resend',
    attempt,
    confirmedAbsentBy,
    deadline: null,
    cancelRequest: null,
  } as const
  return resolve(payout, { ...resolution, terms }, { by: 'asha', reason: 'they do not have it' }, NOW)
}
const resentAfter = (payout: Payout, confirmedAbsentBy: string | null): Payout => {
  const resolved = resent(payout, confirmedAbsentBy)
  assert.ok('change' in resolved)
  return resolved.change.after
}
const toReview = (payout: Payout) => become(payout, 'review', { reason: 'no-promise' })

test('a payout that was sent needs the promise to refuse duplicates, however often later attempts sent no byte', () => {
  const queued = absent(sent)
  assert.equal(withdrawnPromise(queued, REFUSES), null)
  assert.match(
    withdrawnPromise(queued, MAY_PAY_TWICE) ?? '',
    /do not say that the gateway refuses duplicates/,
  )
  const again = answered(sentAgain(queued), { kind: 'not-sent', reason: 'ECONNREFUSED', exchange })
  assert.notEqual(withdrawnPromise(again, MAY_PAY_TWICE), null)
})

test('a payout that was turned away needs every list of codes that it relied on', () => {
  const twice = turnedAway(sentAgain(turnedAway(sent, 'BALANCE_SHORT')), 'TOO_FAST')
  const queued = turnedAway(sentAgain(twice), 'BALANCE_SHORT')
  assert.deepEqual([queued.reason, queued.unpaidCodes], ['BALANCE_SHORT', 'TOO_FAST\nBALANCE_SHORT'])
  assert.equal(withdrawnPromise(queued, MAY_PAY_TWICE), null)
  for (const code of MAY_PAY_TWICE.notPaidCodes) {
    const without = MAY_PAY_TWICE.notPaidCodes.filter((each) => each !== code)
    assert.match(
      withdrawnPromise(queued, { ...REFUSES, notPaidCodes: without }) ?? '',
      new RegExp(`said ${code} `),
    )
  }
})

test('a person who confirms that the gateway has no order covers the attempts until then, not later ones', () => {
  const confirmed = resentAfter(toReview(turnedAway(sent, 'GONE_FROM_THE_LIST')), 'R. Iyer')
  assert.equal(withdrawnPromise(confirmed, MAY_PAY_TWICE), null)
  const ofDoubted = resentAfter(toReview(absent(sent)), 'R. Iyer')
  assert.equal(withdrawnPromise(ofDoubted, MAY_PAY_TWICE), null)
  assert.notEqual(withdrawnPromise(absent(sentAgain(ofDoubted)), MAY_PAY_TWICE), null)
})

test('a person who relies on a promise of the gateway confirms nothing', () => {
  assert.notEqual(withdrawnPromise(resentAfter(toReview(absent(sent)), null), MAY_PAY_TWICE), null)
  const refused = { refused: { kind: 'duplicates-not-refused' } }
  assert.deepEqual(resent(toReview(turnedAway(sent, 'GONE_FROM_THE_LIST')), null), refused)
  const anywhere = { ...toReview(absent(sent)), accountId: null }
  assert.deepEqual(resent(anywhere, null), { refused: { kind: 'account-not-known' } })
  assert.ok('change' in resent(anywhere, 'R. Iyer'))
})

test('settings that are not in force confirm no absence', () => {
  const unsure = absent({ ...sent, notFoundCount: 9 }, inconclusive(POLICY))
  assert.deepEqual([unsure.state, unsure.notFoundCount, unsure.dueAt], ['unknown', 0, NOW + HOUR + 3_000])
})
