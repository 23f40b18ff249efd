import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { words } from '../mask.ts'
import { paise } from '../money.ts'
import { cancel } from './cancel.ts'
import { sentPayout } from './payout.fixture.ts'
import type { Payout } from './payout.ts'
import { isUtr, type Resolution, type ResolveRefusal, resolve, shownOf } from './resolve.ts'
import { STATES } from './states.ts'

const NOW = Date.UTC(2026, 10, 30, 9)
const HOUR = 3_600_000
const TERMS = {
  accountId: 'here',
  settingsHash: 'h',
  duplicatesRefused: true,
  notPaidCodes: [],
  deadlineMs: 72 * HOUR,
}
const ASHA = { by: 'asha', reason: 'the bank says so' }

const inReview = (fields: Partial<Payout> = {}): Payout =>
  sentPayout({
    ...{ state: 'review', reason: 'proved-absent', version: 4, attempt: 2, deadline: NOW + HOUR },
    ...fields,
  })

const PAID: Resolution = { kind: 'paid', utr: '632611200001' }
const FAILED: Resolution = { kind: 'failed' }
const resend = (fields: Partial<Extract<Resolution, { kind: 'resend' }>> = {}): Resolution => ({
  kind: 'resend',
  attempt: 2,
  cancelRequest: null,
  confirmedAbsentBy: null,
  deadline: null,
  terms: TERMS,
  ...fields,
})

function resolved(payout: Payout, resolution: Resolution, decided = ASHA) {
  const decision = resolve(payout, resolution, decided, NOW)
  assert.ok('change' in decision, 'expected it to be carried out')
  assert.equal(decision.change.source, 'OPERATOR')
  assert.equal(decision.change.after.version, payout.version + 1)
  return { after: decision.change.after, note: decision.change.exchange?.note }
}

function refused(payout: Payout, resolution: Resolution): ResolveRefusal {
  const decision = resolve(payout, resolution, ASHA, NOW)
  assert.ok('refused' in decision, 'expected it to be refused')
  return decision.refused
}

describe('what a person decides about a payout in review', () => {
  test('paid ends it with the person’s UTR, and records who decided and why', () => {
    const { after, note } = resolved(inReview(), PAID)
    assert.deepEqual([after.state, after.utr, after.reason], ['paid', '632611200001', null])
    assert.equal(note, 'asha: the bank says so (paid, UTR 632611200001)')
  })

  test('failed ends it with the person’s reason, and masks account numbers in it', () => {
    const decided = { by: 'asha', reason: 'account 50100123456789 is closed' }
    const { after, note } = resolved(inReview(), FAILED, decided)
    assert.deepEqual([after.state, after.reason], ['failed', 'account ••••6789 is closed'])
    assert.equal(note, 'asha: account ••••6789 is closed (failed)')
  })

  test('a payout they call paid was sent, even if the ledger lacks the attempt; one they call failed, if it may have been', () => {
    const lacking = { attempt: 0, accountId: null }
    assert.equal(resolved(inReview(lacking), PAID).after.attempt, 1)
    assert.equal(resolved(inReview({ ...lacking, doubted: true }), FAILED).after.attempt, 1)
    assert.equal(resolved(inReview(lacking), FAILED).after.attempt, 0)
    assert.equal(resolved(inReview(), PAID).after.attempt, 2)
  })

  test('resend queues it under the same order number, and counts its attempts on', () => {
    const { after, note } = resolved(inReview(), resend())
    assert.deepEqual(
      [after.state, after.reason, after.orderNo, after.attempt, after.ready, after.deadline, after.dueAt],
      ['queued', 'resent', 'PORDER1', 2, true, NOW + HOUR, NOW + HOUR],
    )
    assert.equal(note, 'asha: the bank says so (sent again under the same order number)')
  })

  for (const state of STATES.filter((each) => each !== 'review')) {
    test(`none of it moves a payout that is ${state}`, () => {
      for (const resolution of [PAID, FAILED, resend({ confirmedAbsentBy: 'R. Iyer' })]) {
        assert.deepEqual(refused(inReview({ state }), resolution), { kind: 'not-in-review', state })
      }
    })
  }
})

describe('what a person was shown', () => {
  const MOVED: Partial<Payout>[] = [
    { version: 6 },
    { attempt: 3 },
    { cancelRequest: 'hr: left the company' },
    { agentpayOrderId: 'AP1' },
    { refusal: 'account closed' },
  ]

  test('is what they decide about: if the payout has moved since, nothing happens', () => {
    const shown = shownOf(inReview())
    for (const resolution of [PAID, FAILED, resend({ confirmedAbsentBy: 'R. Iyer' })]) {
      assert.ok('change' in resolve(inReview({ queries: 7 }), resolution, ASHA, NOW, shown))
      for (const fields of MOVED) {
        const now = inReview(fields)
        assert.deepEqual(resolve(now, resolution, ASHA, NOW, shown), {
          refused: { kind: 'moved', shown, now: shownOf(now) },
        })
      }
    }
  })

  test('about one attempt says nothing about the next: it neither fails the next nor sends it again', () => {
    for (const attempt of [1, 3]) {
      for (const resolution of [resend({ attempt, confirmedAbsentBy: 'R. Iyer' }), { ...FAILED, attempt }])
        assert.deepEqual(refused(inReview(), resolution), { kind: 'other-attempt', attempt, latest: 2 })
    }
  })
})

describe('to send again', () => {
  const MAY_PAY_TWICE = { ...TERMS, duplicatesRefused: false }
  const confirmedAbsentBy = 'R. Iyer'

  test('requires a confirmed absence if it was sent to another account; then no order is alive there', () => {
    const elsewhere = inReview({ accountId: 'there' })
    assert.deepEqual(refused(elsewhere, resend()), { kind: 'sent-elsewhere', accountId: 'there' })
    const { after } = resolved(elsewhere, resend({ confirmedAbsentBy }))
    assert.deepEqual([after.state, after.accountId, after.doubted], ['queued', null, false])
    assert.equal(resolved(inReview(), resend()).after.doubted, true)
  })

  test('never makes it a payout that was never sent: a later request to cancel hands it to a person', () => {
    const elsewhere = inReview({ accountId: 'there' })
    for (const each of [inReview(), elsewhere]) {
      const { after } = resolved(each, resend({ confirmedAbsentBy }))
      const decision = cancel(after, 'OPERATOR', words(ASHA))
      assert.ok('change' in decision)
      assert.deepEqual([decision.change.after.state, decision.change.after.ready], ['review', false])
    }
  })

  test('requires that the person was shown the request to cancel', () => {
    const cancelRequest = 'hr: left the company'
    const expected = { kind: 'to-be-cancelled', cancelRequest }
    assert.deepEqual(refused(inReview({ cancelRequest }), resend({ confirmedAbsentBy })), expected)
  })

  test('withdraws a request to cancel, and records that', () => {
    const cancelRequest = 'hr: left the company'
    const { after, note } = resolved(inReview({ cancelRequest }), resend({ cancelRequest }))
    assert.deepEqual([after.cancelRequest, after.ready], [null, true])
    assert.match(note ?? '', /though it was to be cancelled/)
  })

  test('requires a confirmed absence if the gateway may pay one order number twice', () => {
    assert.deepEqual(refused(inReview(), resend({ terms: MAY_PAY_TWICE })), {
      kind: 'duplicates-not-refused',
    })
    const { after, note } = resolved(inReview(), resend({ terms: MAY_PAY_TWICE, confirmedAbsentBy }))
    assert.equal(after.state, 'queued')
    assert.equal(
      note,
      'asha: the bank says so (sent again under the same order number, R. Iyer confirmed that the gateway has no such order)',
    )
  })

  test('requires a confirmed absence if the gateway had numbered the order, and then deletes that number', () => {
    const known = inReview({ agentpayOrderId: 'AP1', fee: paise(500n), utr: '632611200001' })
    assert.deepEqual(refused(known, resend()), { kind: 'gateway-had-it', agentpayOrderId: 'AP1' })
    const { after, note } = resolved(known, resend({ confirmedAbsentBy }))
    assert.deepEqual([after.agentpayOrderId, after.fee, after.utr], [null, null, null])
    assert.match(note ?? '', /which it had called AP1/)
  })

  test('after the deadline, sets the merchant’s usual one', () => {
    const { after, note } = resolved(inReview({ deadline: NOW }), resend())
    assert.deepEqual([after.deadline, after.dueAt], [NOW + 72 * HOUR, NOW + 72 * HOUR])
    assert.match(note ?? '', /deadline 2026-12-03T09:00:00.000Z/)
  })

  test('uses the deadline that the person gives, before or after the old one', () => {
    for (const deadline of [NOW + 1_000, NOW + 5 * HOUR]) {
      assert.equal(resolved(inReview(), resend({ deadline })).after.deadline, deadline)
    }
    assert.deepEqual(refused(inReview(), resend({ deadline: NOW })), { kind: 'deadline-over', deadline: NOW })
  })
})

test('a UTR has letters, digits and hyphens, at most 30 as in the contract', () => {
  for (const utr of ['632611200001', 'SBIN526112200001', 'A'.repeat(30)]) assert.ok(isUtr(utr), utr)
  for (const utr of ['', 'A'.repeat(31), '6326 1120', '632611200001\n', 'a&b=c']) assert.ok(!isUtr(utr), utr)
})
