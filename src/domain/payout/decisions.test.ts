import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { contradicts } from '../anomaly-details.ts'
import { HOLD_REASONS, release } from '../commands/holds.ts'
import type { EvidenceSource, Exchange, OrderReport } from '../evidence.ts'
import type { ApplyAnswer } from '../gateway-answers.ts'
import { anomalyId, orderNumber } from '../identifiers.ts'
import { words } from '../mask.ts'
import { paise } from '../money.ts'
import { nothingPublished } from '../recovery/published-story.ts'
import { readBackStory } from '../recovery/read-back.ts'
import { applyEvidence } from './apply-evidence.ts'
import { CANCEL_REQUESTED, cancel } from './cancel.ts'
import { neverSent } from './ledger-lacks-attempt.ts'
import { doubtedAnew, inconclusive, PROMISES_NOTHING, type QueryPolicy } from './next-query.ts'
import { onTimer } from './on-timer.ts'
import { shown } from './order-shown.ts'
import { QUERY_POLICY, sentPayout } from './payout.fixture.ts'
import type { Decision, Payout } from './payout.ts'
import { recordApply } from './record-apply-answer.ts'
import { recordAbsence, recordNoAnswer } from './record-query-answer.ts'
import { resolve } from './resolve.ts'
import { STATES, type State } from './states.ts'
import { become } from './transition.ts'

const NOW = Date.UTC(2026, 10, 30, 9)
const HOUR = 3_600_000
const POLICY: QueryPolicy = {
  ...QUERY_POLICY,
  queryAfterMs: [3_000, 9_000],
  graceMs: 5_000,
  confirmations: 2,
  notPaidCodes: ['IFSC_INVALID', 'TOO_FAST'],
  duplicatesRefused: true,
}
const NO_RESEND: QueryPolicy = { ...POLICY, duplicatesRefused: false }
const exchange = { note: 'as received' }

const given = (state: State, fields: Partial<Payout> = {}): Payout =>
  sentPayout({
    state,
    ...((state === 'held' || state === 'queued') && { attempt: 0, accountId: null }),
    agentpayOrderId: state === 'processing' ? 'AP1' : null,
    deadline: NOW + HOUR,
    unknownSince: state === 'unknown' ? NOW - 60_000 : null,
    ready: state === 'queued',
    dueAt: NOW,
    ...fields,
  })

const report = (status: OrderReport['status'], fields: Partial<OrderReport> = {}): OrderReport => ({
  mchOrderNo: 'PORDER1',
  agentpayOrderId: 'AP1',
  status,
  amount: paise(5_000_000n),
  fee: paise(500n),
  utr: status === 'success' ? '632611200001' : null,
  errorMessage: status === 'failed' ? 'account closed' : null,
  exchange,
  ...fields,
})

const accepted: ApplyAnswer = {
  kind: 'accepted',
  agentpayOrderId: 'AP1',
  fee: paise(500n),
  status: 'processing',
  exchange,
}
const unknown: ApplyAnswer = { kind: 'unknown', reason: 'timeout', exchange }
const notSent: ApplyAnswer = { kind: 'not-sent', reason: 'ECONNREFUSED', exchange }
const refused: ApplyAnswer = {
  kind: 'refused',
  code: 'IFSC_INVALID',
  message: 'no such branch',
  exchange,
}
const tooFast: ApplyAnswer = {
  kind: 'retry-later',
  code: 'TOO_FAST',
  message: '',
  balanceShort: false,
  exchange,
}
const duplicate: ApplyAnswer = { kind: 'duplicate', code: 'DUPLICATE_ORDER', exchange }

/** The payout after a decision that moved it: one version higher, with its evidence. */
function moved(decision: Decision, to: State): Payout {
  assert.ok('change' in decision, `expected a move to ${to}, got ${JSON.stringify(Object.keys(decision))}`)
  const { before, after } = decision.change
  assert.equal(after.state, to)
  assert.equal(after.version, before.version + 1)
  return after
}

function absorbed(decision: Decision): Payout {
  assert.ok('change' in decision)
  const { before, after } = decision.change
  assert.equal(after.state, before.state)
  assert.equal(after.version, before.version)
  return after
}

/** An anomaly about the whole payout, in words that a person can act on, followed by the reported facts. */
function anomalous(decision: Decision, kind: string, words: string): void {
  assert.ok('anomaly' in decision)
  const { source, exchange, detail, ...rest } = decision.anomaly
  assert.deepEqual(rest, { merchantId: 'acme', payoutId: 'salary-1', orderNo: 'PORDER1', kind })
  assert.equal(detail.slice(0, words.length), words)
}

/** A decision that keeps the source and the exchange. */
function attributed(decision: Decision, source: EvidenceSource, said: Exchange | null): Decision {
  if ('nothing' in decision) return decision
  const kept = 'anomaly' in decision ? decision.anomaly : decision.change
  assert.deepEqual([kept.source, kept.exchange], [source, said])
  return decision
}

/** Version 5 is of NOW. */
const submittedUnder = (versions: readonly number[]) => new Set(versions.map((version) => NOW + version - 5))

describe('an answer to apply', () => {
  const record = (payout: Payout, answer: ApplyAnswer, attempt = payout.attempt) =>
    attributed(recordApply(payout, attempt, answer, POLICY, NOW), 'APPLY', exchange)

  test('accepted: processing, with the platform order number and fee, and a query is planned', () => {
    const after = moved(record(given('submitting'), accepted), 'processing')
    assert.deepEqual(
      [after.agentpayOrderId, after.fee, after.dueAt, after.reason],
      ['AP1', paise(500n), NOW + 3_000, null],
    )
  })

  for (const status of ['success', 'failed'] as const) {
    test(`accepted with status ${status} proves acceptance only, and payoutd asks at once`, () => {
      const after = moved(record(given('submitting'), { ...accepted, status }), 'processing')
      assert.equal(after.dueAt, NOW)
    })
  }

  test('not sent, but an earlier attempt turns out to have an order: unknown, and never sent again', () => {
    const known = given('submitting', { attempt: 2, agentpayOrderId: 'AP1' })
    for (const answer of [notSent, tooFast]) {
      const after = moved(record(known, answer), 'unknown')
      assert.deepEqual([after.ready, after.agentpayOrderId, after.accountId], [false, 'AP1', known.accountId])
    }
  })

  test('refused after an attempt that may be alive: unknown, and payoutd asks; once absent, it failed', () => {
    const after = moved(record(given('submitting', { attempt: 2, doubted: true }), refused), 'unknown')
    assert.deepEqual(
      [after.reason, after.refusal, after.unknownSince, after.dueAt],
      ['refused', 'no such branch', NOW, NOW + 3_000],
    )
    const late = absorbed(record(given('unknown', { attempt: 2, doubted: true, notFoundCount: 1 }), refused))
    assert.deepEqual([late.refusal, late.unknownSince, late.notFoundCount], ['no such branch', NOW, 0])

    const asked = { askedAt: NOW + 5_000, presence: true }
    const absent = (queryPolicy: QueryPolicy) =>
      attributed(
        recordAbsence({ ...after, notFoundCount: 1 }, exchange, asked, queryPolicy, NOW + 5_000),
        'QUERY',
        exchange,
      )
    assert.equal(moved(absent(POLICY), 'failed').reason, 'no such branch')
    assert.equal(moved(absent(NO_RESEND), 'review').reason, 'proved-absent')
  })

  test('a reason that only reads like a refusal is not one', () => {
    const reason = 'refused: no such branch'
    const asked = { askedAt: NOW, presence: true }
    const decision = recordAbsence(
      given('unknown', { reason, notFoundCount: 1 }),
      exchange,
      asked,
      POLICY,
      NOW,
    )
    assert.equal(moved(decision, 'queued').reason, 'proved-absent')
  })

  for (const [answer, reason] of [
    [refused, 'refused'],
    [tooFast, 'later'],
  ] as const) {
    test(`${answer.kind} names no order: unknown, and the gateway’s report decides`, () => {
      const after = moved(record(given('submitting'), answer), 'unknown')
      assert.deepEqual([after.reason, after.unknownSince, after.dueAt], [reason, NOW, NOW + 3_000])
      const queried = (status: OrderReport['status']) =>
        applyEvidence(after, report(status), 'QUERY', POLICY, NOW)
      moved(queried('success'), 'paid')
      assert.equal(moved(queried('failed'), 'failed').reason, 'account closed')
      assert.equal(moved(queried('processing'), 'processing').refusal, null)
    })

    test(`${answer.kind}, and the result had become unknown before: payoutd begins to ask anew`, () => {
      const late = absorbed(record(given('unknown', { notFoundCount: 1 }), answer))
      assert.deepEqual([late.reason, late.unknownSince, late.notFoundCount], [reason, NOW, 0])
    })

    test(`${answer.kind}, but the gateway has shown an order: that it is not found proves nothing`, () => {
      for (const there of [{ orderShown: true }, { agentpayOrderId: 'AP1' }]) {
        const after = moved(record(given('submitting', { attempt: 2, ...there }), answer), 'unknown')
        const absent = (askedAt: number) =>
          notFound({ ...after, notFoundCount: 1 }, askedAt, { presence: true })
        absorbed(absent(NOW + 4_999))
        assert.equal(moved(absent(NOW + 5_000), 'review').reason, 'not-found')
      }
    })
  }

  const notFound = (
    payout: Payout,
    askedAt: number,
    {
      presence = true,
      queryPolicy = NO_RESEND,
    }: { presence?: boolean | null; queryPolicy?: QueryPolicy } = {},
  ) =>
    attributed(
      recordAbsence(payout, exchange, { askedAt, presence }, queryPolicy, askedAt),
      'QUERY',
      exchange,
    )

  test('refused, and queries after the grace do not find it: failed, with the gateway’s reason', () => {
    for (const [message, reason] of [
      ['no such branch', 'no such branch'],
      ['', 'IFSC_INVALID'],
    ] as const) {
      const after = moved(record(given('submitting'), { ...refused, message }), 'unknown')
      const early = absorbed(notFound(after, NOW + 4_999))
      assert.deepEqual([early.notFoundCount, early.dueAt], [0, NOW + 5_000])
      const once = absorbed(notFound(early, NOW + 5_000))
      assert.deepEqual([once.notFoundCount, once.dueAt], [1, NOW + 5_000 + 3_000])
      const failed = moved(notFound(once, NOW + 8_000), 'failed')
      assert.deepEqual([failed.reason, failed.unreported], [reason, true])
    }
  })

  test('"later", and queries after the grace do not find it: queued again, with a back-off', () => {
    const after = moved(record(given('submitting', { attempt: 3 }), tooFast), 'unknown')
    assert.equal(absorbed(notFound(after, NOW + 4_999)).notFoundCount, 0)
    const again = moved(notFound({ ...after, notFoundCount: 1 }, NOW + 5_000), 'queued')
    assert.deepEqual(
      [again.reason, again.turnedAway, again.unpaidCodes, again.accountId, again.doubted],
      ['TOO_FAST', true, 'TOO_FAST', null, false],
    )
    assert.deepEqual([again.ready, again.dueAt], [false, NOW + 5_000 + 1_600])
  })

  for (const [why, fields, promises] of [
    ['the dialect no longer says that such an attempt is not paid', {}, { notPaidCodes: [] }],
    ['an earlier attempt may be alive', { doubted: true }, {}],
  ] as const)
    test(`after a refusal or a "later", if ${why}, absence takes as much as ever`, () => {
      for (const answer of [refused, tooFast]) {
        const after = moved(record(given('submitting', fields), answer), 'unknown')
        const absent = (payout: Payout, presence: boolean) =>
          notFound(payout, NOW + 5_000, { queryPolicy: { ...NO_RESEND, ...promises }, presence })
        assert.equal(absorbed(absent(after, false)).notFoundCount, 0)
        const once = absorbed(absent(after, true))
        assert.equal(once.notFoundCount, 1)
        assert.equal(moved(absent(once, true), 'review').reason, 'proved-absent')
      }
    })

  test('an answer that nothing has confirmed by the deadline is shown to the person who decides', () => {
    const near = given('submitting', { deadline: NOW + 1_000 })
    const after = moved(record(near, refused), 'unknown')
    assert.equal(after.dueAt, NOW + 1_000)
    const expired = onTimer(after, POLICY, NOW + 1_000)
    assert.ok(!('ask' in expired))
    assert.deepEqual(moved(expired, 'review').refusal, 'no such branch')
  })

  test('after a refusal or a "later", "not found" counts without a presence check only if there is no order to check with', () => {
    for (const [answer, end] of [
      [refused, 'failed'],
      [tooFast, 'queued'],
    ] as const) {
      const after = moved(record(given('submitting'), answer), 'unknown')
      assert.equal(absorbed(notFound(after, NOW + 5_000, { presence: false })).notFoundCount, 0)
      const once = { ...after, notFoundCount: 1 }
      moved(notFound(once, NOW + 5_000, { presence: null }), end)
      const atFormer = { queryPolicy: { ...NO_RESEND, ...PROMISES_NOTHING }, presence: null }
      moved(notFound(once, NOW + 5_000, atFormer), 'review')
      absorbed(notFound({ ...once, doubted: true }, NOW + 5_000, { presence: null }))
    }
  })

  test('a refusal that the dialect no longer calls one does not end a payout that is confirmed absent', () => {
    const after = moved(record(given('submitting'), refused), 'unknown')
    const queryPolicy = { ...POLICY, notPaidCodes: [] }
    const once = absorbed(notFound(after, NOW + 5_000, { queryPolicy }))
    assert.equal(moved(notFound(once, NOW + 5_000, { queryPolicy }), 'review').refusal, 'no such branch')
  })

  test('after a refusal or a "later", settings that are not in force conclude nothing from "not found"', () => {
    for (const answer of [refused, tooFast]) {
      const after = moved(record(given('submitting'), answer), 'unknown')
      const queryPolicy = inconclusive(POLICY)
      absorbed(notFound(after, NOW + HOUR - 1, { queryPolicy, presence: true }))
    }
  })

  test('an earlier attempt that was accepted after all replaces the resend', () => {
    for (const state of ['queued', 'held'] as const) {
      const waits = given(state, { attempt: 1, accountId: 'here', doubted: true })
      const after = moved(record(waits, accepted, 1), 'processing')
      assert.deepEqual(
        [after.agentpayOrderId, after.fee, after.dueAt, after.accountId, after.ready],
        ['AP1', 500n, NOW + 3_000, 'here', false],
      )
    }
  })

  test('a late answer that the order is there keeps what waits from being sent, and is kept with what is under way', () => {
    for (const state of ['queued', 'held'] as const) {
      const after = moved(record(given(state, { attempt: 1 }), duplicate, 1), 'review')
      assert.deepEqual([after.reason, after.orderShown], ['order-shown', true])
    }
    for (const state of ['submitting', 'processing', 'review'] as const)
      assert.ok(absorbed(record(given(state, { attempt: 2 }), duplicate, 1)).orderShown)
  })

  test('accepted without a number: the gateway has the order, so payoutd asks, and the payout is not sent again', () => {
    const unnamed: ApplyAnswer = { kind: 'unknown', reason: 'no-order-id', exchange }
    const there = moved(record(given('submitting'), unnamed), 'unknown')
    assert.deepEqual([there.reason, there.orderShown], ['no-order-id', true])
    assert.equal(moved(record(given('queued', { attempt: 1 }), unnamed, 1), 'review').reason, 'order-shown')
  })

  test('an earlier attempt that is accepted while the latest is under way is alive beside it: its order is not the latest’s, whose refusal proves nothing', () => {
    for (const state of ['submitting', 'unknown', 'review'] as const) {
      const known = given(state, { attempt: 2 })
      for (const answer of [accepted, duplicate]) {
        const decision = record(known, answer, 1)
        anomalous(decision, 'order-id-mismatch', 'apply ')
        const after = absorbed(decision)
        const { agentpayOrderId, doubted, orderShown, orderBesides } = after
        assert.deepEqual([agentpayOrderId, doubted, orderShown, orderBesides], [null, true, true, true])
        if (state === 'review') continue
        const { change } = record(after, refused, 2) as { change: { after: Payout } }
        assert.deepEqual([change.after.state, change.after.reason], ['unknown', 'refused'])
        const failed = report('failed', { agentpayOrderId: 'AP2' })
        const processing = {
          ...after,
          state: 'processing',
          agentpayOrderId: 'AP2',
          notFoundCount: 9,
        } as const
        const ended = applyEvidence(processing, failed, 'QUERY', NO_GRACE, NOW)
        assert.equal(moved(ended, 'review').reason, 'failed-in-doubt')
      }
    }
  })

  test('an order under another number than the known one is an order besides, after which a failure is left to a person', () => {
    const known = given('processing', { attempt: 2, doubted: true, agentpayOrderId: 'AP2' })
    for (const decision of [
      record(known, { ...accepted, agentpayOrderId: 'AP1' }, 1),
      applyEvidence(known, report('processing', { agentpayOrderId: 'AP1' }), 'CALLBACK', NO_GRACE, NOW),
    ]) {
      anomalous(decision, 'order-id-mismatch', '')
      const after = absorbed(decision)
      assert.deepEqual([after.agentpayOrderId, after.orderBesides], ['AP2', true])
      const failed = report('failed', { agentpayOrderId: 'AP2' })
      const sure = { ...after, notFoundCount: 9 }
      assert.equal(
        moved(applyEvidence(sure, failed, 'QUERY', NO_GRACE, NOW), 'review').reason,
        'failed-in-doubt',
      )
      moved(
        applyEvidence(after, report('success', { agentpayOrderId: 'AP1' }), 'CALLBACK', POLICY, NOW),
        'paid',
      )
    }
  })

  test('the late acceptance of an earlier attempt is never written onto an end', () => {
    for (const state of ['paid', 'failed'] as const) {
      const decision = record(
        given(state, { attempt: 2, turnedAway: true, agentpayOrderId: null }),
        accepted,
        1,
      )
      anomalous(decision, 'order-id-mismatch', 'apply ')
      assert.ok(!('change' in decision))
    }
  })

  test('what provably did not happen frees the payout for another account, unless an earlier attempt may be alive', () => {
    const later = (payout: Payout) => {
      const after = { ...moved(record(payout, tooFast), 'unknown'), notFoundCount: 1 }
      return notFound(after, NOW + 5_000, { queryPolicy: POLICY, presence: true })
    }
    const unsent = (payout: Payout) => record(payout, notSent)
    for (const answer of [unsent, later]) {
      const free = moved(answer(given('submitting')), 'queued')
      assert.deepEqual([free.accountId, free.turnedAway], [null, answer === later])
      const after = moved(answer(given('submitting', { attempt: 2, doubted: true })), 'queued')
      assert.deepEqual([after.accountId, after.doubted], ['here', true])
    }
  })

  test('a timeout after the bytes left is unknown, never failed', () => {
    const after = moved(record(given('submitting'), unknown), 'unknown')
    assert.deepEqual([after.reason, after.unknownSince, after.dueAt], ['timeout', NOW, NOW + 3_000])
  })

  test('duplicate: the gateway has the order, so payoutd asks, and the payout never fails', () => {
    assert.equal(moved(record(given('submitting'), duplicate), 'unknown').reason, 'duplicate')
  })

  test('no byte left: queued again under the same order number, after a back-off that grows', () => {
    const first = moved(record(given('submitting'), notSent), 'queued')
    assert.deepEqual([first.orderNo, first.ready, first.reason], ['PORDER1', false, 'ECONNREFUSED'])
    const waits = [1, 2, 5, 9, 5_000].map((attempt) => {
      const { dueAt } = moved(record(given('submitting', { attempt }), notSent), 'queued')
      return (dueAt as number) - NOW
    })
    assert.deepEqual(waits, [400, 800, 6_400, 60_000, 60_000])
  })

  test('a late answer to an attempt whose lease ended still shows what happened', () => {
    moved(record(given('unknown'), accepted), 'processing')
    moved(record(given('unknown'), notSent), 'queued')
    absorbed(record(given('unknown'), unknown))
    absorbed(record(given('unknown'), duplicate))
  })

  test('an answer to an earlier attempt is evidence and moves nothing', () => {
    absorbed(record(given('submitting', { attempt: 2 }), refused, 1))
    absorbed(record(given('unknown', { attempt: 2 }), refused, 1))
    absorbed(record(given('queued', { attempt: 1 }), notSent, 1))
    absorbed(record(given('queued', { attempt: 1 }), refused, 1))
    absorbed(record(given('review'), unknown))
  })

  test('an answer to an unknown attempt moves nothing, except that it shows the order', () => {
    for (const state of ['submitting', 'unknown'] as const)
      for (const answer of [refused, notSent, tooFast, duplicate, unknown, accepted])
        absorbed(recordApply(given(state), null, answer, POLICY, NOW))
    moved(recordApply(given('queued', { attempt: 1 }), null, accepted, POLICY, NOW), 'processing')
  })
  test('an answer that arrives after its callback adds what the callback left out', () => {
    const after = absorbed(record(given('paid'), accepted))
    assert.deepEqual([after.agentpayOrderId, after.fee], ['AP1', paise(500n)])
    assert.equal(absorbed(record(given('paid', { fee: paise(400n) }), accepted)).fee, 400n)
    const complete = given('paid', { agentpayOrderId: 'AP1', fee: paise(400n) })
    assert.deepEqual(absorbed(record(complete, unknown)), complete)
    assert.deepEqual(absorbed(record(complete, accepted)), complete)
  })

  test('accepted, after another order may have ended the payout: an anomaly, and the end stays as it is', () => {
    for (const ended of [
      given('paid', { attempt: 2, doubted: true }),
      given('failed', { attempt: 2, doubted: true }),
      given('failed', { attempt: 2, turnedAway: true }),
    ]) {
      const decision = record(ended, accepted)
      assert.ok(!('change' in decision))
      const said = `apply says AP1 (processing), but it is not known which order of this payout was ${ended.state}`
      anomalous(decision, 'order-id-mismatch', said)
    }
    assert.equal(
      absorbed(record(given('paid', { attempt: 2, turnedAway: true }), accepted)).agentpayOrderId,
      'AP1',
    )
  })

  for (const [known, reported, named] of [
    [{ utr: '632611200001' }, { utr: null }, 'AP1'],
    [{ agentpayOrderId: 'AP1' }, { agentpayOrderId: null, utr: '632611200001' }, 'UTR 632611200001'],
  ] as const)
    test(`paid ${JSON.stringify(reported)}, perhaps of another order than the known payment ${JSON.stringify(known)}: an anomaly`, () => {
      const paid = given('paid', { attempt: 2, doubted: true, ...known })
      const decision = applyEvidence(paid, report('success', reported), 'CALLBACK', POLICY, NOW)
      assert.ok(!('change' in decision))
      const said = `the gateway says ${named}, but it is not known which order of this payout was paid`
      anomalous(decision, 'order-id-mismatch', said)
    })

  for (const [known, reported, named] of [
    [{ utr: '632611200001' }, {}, 'AP1'],
    [{ agentpayOrderId: 'AP2' }, { agentpayOrderId: null }, 'an order'],
    [
      { agentpayOrderId: 'AP2', utr: '632611200001' },
      { agentpayOrderId: null, utr: '632611200009' },
      'an order',
    ],
  ] as const)
    for (const several of [{ doubted: true }, { turnedAway: true }])
      test(`a failure ${JSON.stringify(reported)} of another order than was paid ${JSON.stringify({ ...known, ...several })} contradicts no payment: an anomaly that confirms no return`, () => {
        const paid = given('paid', { attempt: 2, ...several, ...known })
        const decision = applyEvidence(paid, report('failed', reported), 'CALLBACK', POLICY, NOW)
        assert.ok(!('change' in decision))
        const said = `the gateway says that ${named} failed, but it is not known which order of this payout was paid`
        anomalous(decision, 'order-id-mismatch', said)
      })

  test('a failure of the order that was paid contradicts the payment, and one of a payout of one order always does', () => {
    const several = given('paid', { attempt: 2, doubted: true, agentpayOrderId: 'AP1' })
    const one = given('paid', { utr: '632611200001' })
    for (const paid of [several, one])
      anomalous(
        applyEvidence(paid, report('failed'), 'CALLBACK', POLICY, NOW),
        'contradiction',
        'the gateway reports failed for a payout that is paid',
      )
  })

  test('a fee that no report gave to the payment is not kept with it', () => {
    const paid = given('paid', { attempt: 2, doubted: true, agentpayOrderId: 'AP1', utr: '632611200001' })
    const nameless = report('success', { agentpayOrderId: null, utr: null, fee: paise(900n) })
    assert.equal(absorbed(applyEvidence(paid, nameless, 'CALLBACK', POLICY, NOW)).fee, null)
  })

  test('paid by a report that does not name the order that is known of several: nothing of that order is kept', () => {
    const open = given('processing', { attempt: 2, doubted: true, agentpayOrderId: 'AP2', fee: paise(500n) })
    const nameless = report('success', { agentpayOrderId: null, utr: '632611200001' })
    const { agentpayOrderId, fee, utr } = moved(
      applyEvidence(open, nameless, 'CALLBACK', POLICY, NOW),
      'paid',
    )
    assert.deepEqual([agentpayOrderId, fee, utr], [null, nameless.fee, '632611200001'])
  })

  test('paid after an attempt that was turned away: the payment is of the order of the latest, whose failure returns it', () => {
    const open = given('processing', { attempt: 2, turnedAway: true, agentpayOrderId: 'AP2' })
    const nameless = report('success', { agentpayOrderId: null, utr: '632611200001' })
    const paid = moved(applyEvidence(open, nameless, 'CALLBACK', POLICY, NOW), 'paid')
    assert.equal(paid.agentpayOrderId, 'AP2')
    const said = 'the gateway reports failed for a payout that is paid'
    anomalous(
      applyEvidence(paid, report('failed', { agentpayOrderId: 'AP2' }), 'CALLBACK', POLICY, NOW),
      'contradiction',
      said,
    )
    const { change } = resolve(
      given('review', { ...open, state: 'review' }),
      { kind: 'paid', utr: '632611200001' },
      { by: 'asha', reason: 'paid' },
      NOW,
    ) as {
      change: { after: Payout }
    }
    assert.equal(change.after.agentpayOrderId, 'AP2')
  })

  test('failed, then alive, and the gateway that is asked says alive again: an anomaly', () => {
    const failed = given('failed', { saidOtherwise: 'alive' })
    const alive = report('processing')
    const said = 'the gateway reports processing for a payout that is failed'
    anomalous(applyEvidence(failed, alive, 'QUERY', POLICY, NOW), 'contradiction', said)
    absorbed(applyEvidence(failed, alive, 'CALLBACK', POLICY, NOW))
    absorbed(applyEvidence(given('failed'), alive, 'QUERY', POLICY, NOW))
  })

  test('turned away, though what it answers is paid: an anomaly, unless it answers an earlier attempt', () => {
    const answer = {
      kind: 'retry-later',
      code: 'TOO_FAST',
      message: '',
      balanceShort: false,
      exchange,
    } as const
    const paid = given('paid', { attempt: 2 })
    const said = 'apply was turned away (TOO_FAST), yet the payout is paid'
    anomalous(recordApply(paid, 2, answer, POLICY, NOW), 'contradiction', said)
    absorbed(recordApply(paid, 1, answer, POLICY, NOW))
  })

  for (const [known, reported] of [
    [{}, { utr: '632611200001' }],
    [{ utr: '632611200001' }, { utr: '632611200001' }],
    [{ agentpayOrderId: 'AP1' }, { utr: '632611200001' }],
  ] as const)
    test(`paid ${JSON.stringify(reported)}, naming the known payment ${JSON.stringify(known)} or the first to name one: its fields are completed`, () => {
      const paid = given('paid', { attempt: 2, doubted: true, ...known })
      const { agentpayOrderId, utr } = absorbed(
        applyEvidence(paid, report('success', reported), 'CALLBACK', POLICY, NOW),
      )
      assert.deepEqual([agentpayOrderId, utr], ['AP1', '632611200001'])
    })

  test('refused, though the gateway has paid it or has it: an anomaly', () => {
    for (const state of ['paid', 'processing'] as const) {
      const said = `apply was refused (IFSC_INVALID), yet the payout is ${state}`
      anomalous(record(given(state), refused), 'contradiction', said)
      absorbed(record(given(state), notSent))
    }
    absorbed(record(given('failed'), refused))
  })

  test('a fee above the amount is an anomaly, and payoutd keeps it as reported', () => {
    const decision = record(given('submitting'), { ...accepted, fee: paise(999_999_999_999n) })
    anomalous(decision, 'fee-above-amount', 'the gateway says a fee of ₹9,99,99,99,999.99 for a payout of ')
    assert.equal(moved(decision, 'processing').fee, 999_999_999_999n)
  })

  test('an unreadable fee is an anomaly, and the order counts all the same', () => {
    const decision = record(given('submitting'), { ...accepted, fee: null, unreadable: ['fee "5.00"'] })
    anomalous(decision, 'unreadable-fields', 'the gateway says fee "5.00", which payoutd cannot read')
    assert.equal(moved(decision, 'processing').fee, null)
  })

  test('another platform order number than the known one: an anomaly', () => {
    const known = given('paid', { agentpayOrderId: 'AP9' })
    anomalous(
      record(known, accepted),
      'order-id-mismatch',
      'apply says AP1 (processing), but the payout has AP9',
    )
  })
})

describe('a callback or a query result', () => {
  const settled = (payout: Payout, evidence: OrderReport, source: 'CALLBACK' | 'QUERY' = 'CALLBACK') =>
    attributed(applyEvidence(payout, evidence, source, POLICY, NOW), source, exchange)

  for (const state of ['submitting', 'unknown', 'processing', 'review'] as const) {
    test(`success makes ${state} paid, with UTR and fee`, () => {
      const after = moved(settled(given(state), report('success')), 'paid')
      assert.deepEqual(
        [after.utr, after.fee, after.dueAt, after.ready],
        ['632611200001', paise(500n), null, false],
      )
    })
    test(`failed makes ${state} failed, with the gateway's reason`, () => {
      assert.equal(moved(settled(given(state), report('failed')), 'failed').reason, 'account closed')
      const mute = report('failed', { errorMessage: null })
      assert.equal(moved(settled(given(state), mute), 'failed').reason, 'failed')
    })
  }

  test('an unreadable field of a payment is an anomaly, and the payment counts all the same', () => {
    const odd = { utr: null, unreadable: ['channelPayNo "UTIB 0000 1234"'] }
    const words = 'the gateway says channelPayNo "UTIB 0000 1234", which payoutd cannot read'
    for (const source of ['CALLBACK', 'QUERY'] as const) {
      const decision = settled(given('processing'), report('success', odd), source)
      anomalous(decision, 'unreadable-fields', words)
      const paid = moved(decision, 'paid')
      const again = settled(paid, report('success', odd), source)
      anomalous(again, 'unreadable-fields', words)
      assert.deepEqual(absorbed(again), paid)
    }
    for (const status of ['processing', 'failed'] as const)
      assert.ok(!('anomaly' in settled(given('processing'), report(status, odd))))
  })

  for (const state of ['held', 'queued'] as const) {
    test(`evidence ends or moves ${state} after an attempt`, () => {
      moved(settled(given(state, { attempt: 1 }), report('success')), 'paid')
      moved(settled(given(state, { attempt: 1 }), report('failed')), 'failed')
      moved(settled(given(state, { attempt: 1 }), report('processing')), 'processing')
    })
    test(`the gateway cannot have ${state} without an attempt: an anomaly, and a person decides`, () => {
      for (const wrong of [{}, { amount: paise(1n) }]) {
        const said = 'the gateway reports success for a payout that was never sent'
        const decision = settled(given(state), report('success', wrong))
        anomalous(decision, 'never-sent', said)
        const after = moved(decision, 'review')
        assert.deepEqual([after.ready, after.dueAt, after.reason], [false, null, 'never-sent'])
      }
    })
  }

  for (const state of ['rejected', 'cancelled'] as const) {
    test(`${state}: any report of the gateway is an anomaly`, () => {
      for (const status of ['success', 'failed', 'processing'] as const) {
        const neverSent = `the gateway reports ${status} for a payout that was never sent`
        anomalous(settled(given(state, { attempt: 0 }), report(status)), 'never-sent', neverSent)
        const ended = `the gateway reports ${status} for a payout that is ${state}`
        anomalous(settled(given(state, { attempt: 1 }), report(status)), 'contradiction', ended)
      }
    })
  }

  for (const status of ['pending', 'processing'] as const) {
    test(`${status}: submitting and unknown become processing`, () => {
      moved(settled(given('submitting'), report(status)), 'processing')
      moved(settled(given('unknown'), report(status), 'QUERY'), 'processing')
    })
    test(`${status} while processing: payoutd asks again, at growing intervals`, () => {
      const first = absorbed(settled(given('processing'), report(status), 'QUERY'))
      assert.deepEqual([first.queries, first.dueAt], [1, NOW + 9_000])
      const soon = { deadline: NOW + 1_000 }
      assert.equal(absorbed(settled(given('processing', soon), report(status), 'QUERY')).dueAt, NOW + 1_000)
      const many = absorbed(settled(given('processing', { queries: 40 }), report(status), 'QUERY'))
      assert.equal(many.dueAt, NOW + 9_000)
    })
    test(`${status} from a callback does not count as a query`, () => {
      const after = absorbed(settled(given('processing', { queries: 1 }), report(status)))
      assert.deepEqual([after.queries, after.dueAt], [1, NOW + 9_000])
      const first = moved(settled(given('unknown'), report(status)), 'processing')
      assert.deepEqual([first.queries, first.dueAt], [0, NOW + 3_000])
    })
    test(`a late "${status}" is weaker than an end, and changes nothing`, () => {
      absorbed(settled(given('paid'), report(status)))
      absorbed(settled(given('failed'), report(status)))
    })
  }

  test('the same end again changes nothing', () => {
    absorbed(settled(given('paid'), report('success')))
    absorbed(settled(given('failed'), report('failed')))
  })

  describe('after it was sent again, where an earlier attempt may be alive', () => {
    const again = (state: State, fields: Partial<Payout> = {}) =>
      given(state, { attempt: 2, accountId: 'here', doubted: true, agentpayOrderId: null, ...fields })
    const failed = report('failed')
    const query = (payout: Payout, queryPolicy = POLICY, askedAt = NOW) =>
      attributed(applyEvidence(payout, failed, 'QUERY', queryPolicy, NOW, askedAt), 'QUERY', exchange)

    for (const state of ['submitting', 'queued', 'held', 'review'] as const) {
      test(`payoutd keeps a failure, and it moves nothing while ${state}`, () => {
        const before = again(state)
        assert.deepEqual(absorbed(settled(before, failed)), before)
        assert.deepEqual(absorbed(query(before)), before)
      })
    }

    for (const state of ['unknown', 'processing'] as const) {
      test(`a failure from a callback while ${state} makes payoutd ask at once, but not again and again`, () => {
        const before = again(state, { dueAt: NOW + HOUR })
        const after = absorbed(settled(before, failed))
        assert.deepEqual([after.dueAt, after.refusal], [NOW, 'account closed'])
        const asked = { ...after, askedAt: NOW - 1, dueAt: NOW + 9_000 }
        assert.equal(absorbed(settled(asked, failed)).dueAt, NOW + 2_999)
      })

      test(`a failure from a query while ${state} counts as an absence, and enough of them fail the payout`, () => {
        const first = absorbed(query(again(state, { unknownSince: null })))
        assert.deepEqual(
          [first.refusal, first.unknownSince, first.notFoundCount, first.queries, first.dueAt],
          ['account closed', NOW, 0, 1, NOW + POLICY.graceMs],
        )
        const since = { ...first, unknownSince: NOW - 5_000 }
        const once = absorbed(query(since))
        assert.equal(once.notFoundCount, 1)
        assert.equal(absorbed(query(once, POLICY, NOW - 1)).notFoundCount, 1)
        const after = moved(query(once), 'failed')
        assert.deepEqual(
          [after.reason, after.agentpayOrderId, after.refusal],
          ['account closed', 'AP1', null],
        )
      })
    }

    test('a person decides about a failure if the gateway may pay two orders under one number', () => {
      const after = moved(query(again('unknown', { notFoundCount: 1 }), NO_RESEND), 'review')
      assert.equal(after.reason, 'failed-in-doubt')
    })

    test('a failure of another order than the latest attempt’s says nothing about that attempt', () => {
      const latest = again('processing', {
        agentpayOrderId: 'AP2',
        notFoundCount: 1,
        unknownSince: NOW - 60_000,
      })
      assert.deepEqual(absorbed(settled(latest, failed)), latest)
      const after = absorbed(query(latest))
      assert.deepEqual([after.notFoundCount, after.refusal, after.queries], [1, null, 1])
    })

    test('processing shows that it is alive, and clears the doubts', () => {
      const before = again('processing', {
        refusal: 'account closed',
        notFoundCount: 1,
        unknownSince: NOW - 5_000,
      })
      const after = absorbed(settled(before, report('processing')))
      assert.deepEqual([after.refusal, after.notFoundCount, after.unknownSince], [null, 0, null])
    })

    test('success of any of its orders makes it paid, and a second success is an anomaly', () => {
      const latest = again('processing', { agentpayOrderId: 'AP2' })
      const after = moved(settled(latest, report('success')), 'paid')
      assert.equal(after.agentpayOrderId, 'AP1')
      const second = settled(after, report('success', { agentpayOrderId: 'AP2' }))
      anomalous(second, 'order-id-mismatch', 'the gateway says AP2, but the payout has AP1')
    })

    test('the fee and UTR of one of its orders are not copied to another that is paid', () => {
      const reported = { agentpayOrderId: 'AP2', fee: paise(900n), utr: '632611209999' }
      const latest = absorbed(
        settled(again('processing', reported), report('processing', { fee: paise(1n) })),
      )
      assert.deepEqual([latest.fee, latest.utr], [reported.fee, reported.utr])
      const paidBy = (order: Partial<OrderReport>) => {
        const { agentpayOrderId, fee, utr } = moved(
          settled(latest, report('success', { fee: null, utr: null, ...order })),
          'paid',
        )
        return [agentpayOrderId, fee, utr]
      }
      assert.deepEqual(paidBy({ agentpayOrderId: 'AP1' }), ['AP1', null, null])
      assert.deepEqual(paidBy({ agentpayOrderId: 'AP1', utr: '7' }), ['AP1', null, '7'])
      assert.deepEqual(paidBy({ agentpayOrderId: 'AP2' }), ['AP2', reported.fee, reported.utr])
    })
  })

  describe('after the gateway said "later" to an attempt, of which it may keep an order as failed', () => {
    const again = (state: State, fields: Partial<Payout> = {}) =>
      given(state, { attempt: 2, accountId: 'here', turnedAway: true, agentpayOrderId: null, ...fields })
    const failed = report('failed')
    const query = (payout: Payout, queryPolicy: QueryPolicy) =>
      attributed(applyEvidence(payout, failed, 'QUERY', queryPolicy, NOW), 'QUERY', exchange)

    for (const state of ['submitting', 'review'] as const) {
      test(`payoutd keeps a failure, and it moves nothing while the next attempt is ${state}`, () => {
        assert.deepEqual(absorbed(settled(again(state), failed)), again(state))
      })
    }

    test('a failure while the next attempt is unknown counts as an absence', () => {
      const asked = absorbed(settled(again('unknown', { dueAt: NOW + HOUR }), failed))
      assert.deepEqual([asked.dueAt, asked.refusal], [NOW, 'account closed'])
      assert.equal(absorbed(query(asked, POLICY)).notFoundCount, 1)
      moved(query({ ...asked, notFoundCount: 1 }, POLICY), 'failed')
      assert.equal(
        moved(query({ ...asked, notFoundCount: 1 }, NO_RESEND), 'review').reason,
        'failed-in-doubt',
      )
    })

    test('a failure of the order that the next attempt’s answer named is the end', () => {
      moved(settled(again('processing', { agentpayOrderId: 'AP1' }), failed), 'failed')
    })

    test('a failure that names no order, or another one, is not the end', () => {
      const latest = again('processing', { agentpayOrderId: 'AP2' })
      absorbed(settled(latest, report('failed', { agentpayOrderId: null })))
      anomalous(settled(latest, failed), 'order-id-mismatch', 'the gateway says AP1, but the payout has AP2')
    })

    test('an order that a report calls processing may belong to either attempt', () => {
      const processing = moved(settled(again('unknown'), report('processing')), 'processing')
      assert.equal(processing.agentpayOrderId, null)
      assert.equal(absorbed(settled(processing, report('processing'))).agentpayOrderId, null)
      absorbed(settled(processing, failed))
    })

    test('the fee and the UTR of an earlier order are not those of the payment', () => {
      for (const sent of [again('submitting'), again('unknown'), again('review')]) {
        const reported = report('processing', { fee: paise(900n), utr: '632611209999' })
        const after = moved(settled(sent, reported), 'processing')
        assert.deepEqual([after.fee, after.utr], [null, null])
        const taken = { ...after, agentpayOrderId: 'AP2' }
        const silent = { agentpayOrderId: 'AP2', fee: null, utr: null }
        const paid = moved(settled(taken, report('success', silent)), 'paid')
        assert.deepEqual([paid.agentpayOrderId, paid.fee, paid.utr], ['AP2', null, null])
      }
    })

    test('a failure is the end if nothing was sent since', () => {
      moved(settled(again('queued'), failed), 'failed')
    })

    test('the ledger’s first attempt may not be the first: it is sent again after evidence of one that the ledger lost', () => {
      const lost = moved(settled(given('queued'), failed), 'review')
      const terms = {
        ...{ accountId: 'here', settingsHash: 'h', deadlineMs: HOUR },
        ...{ duplicatesRefused: false, notPaidCodes: [] },
      }
      const { attempt } = lost
      const confirmed = { attempt, confirmedAbsentBy: 'R. Iyer', deadline: null, cancelRequest: null, terms }
      const resend = { kind: 'resend', ...confirmed } as const
      const resent = resolve(lost, resend, { by: 'asha', reason: 'no such order' }, NOW)
      assert.ok('change' in resent)
      const { after } = resent.change
      assert.deepEqual([after.attempt, after.doubted, after.turnedAway], [0, true, true])
      moved(cancel(after, 'OPERATOR', words({ by: 'asha', reason: 'left' })), 'review')
      moved(onTimer({ ...after, deadline: NOW }, POLICY, NOW) as Decision, 'review')
      const sent = become(after, 'submitting', { attempt: 1, accountId: 'here', dueAt: NOW + HOUR })
      assert.deepEqual(absorbed(settled(sent, failed)), sent)
      const alone = { ...sent, doubted: false }
      assert.deepEqual(absorbed(settled(alone, failed)), alone)
    })
  })

  test('an attempt that the ledger lost may be alive, so a payout that has not ended is doubted', () => {
    const lost = neverSent(given('submitting'), 'APPLY', 'another attempt was answered', exchange, 'attempt')
    assert.equal(absorbed(lost).doubted, true)
    assert.ok(
      !('change' in neverSent(given('paid'), 'APPLY', 'another attempt was answered', exchange, 'attempt')),
    )
    const sent = {
      version: 5,
      fromState: 'queued',
      toState: 'submitting',
      reason: null,
      evidence: 'COMMAND',
      at: NOW,
    } as const
    const story = {
      ...nothingPublished(),
      transitions: [sent],
      submitted: submittedUnder([3, 5]),
      highest: 5,
    }
    const { after } = readBackStory(given('processing', { agentpayOrderId: 'AP1' }), story, [], {
      transitions: [],
      submitted: [...submittedUnder([3])],
    })
    assert.deepEqual([after.attempt, after.doubted, after.agentpayOrderId], [2, true, null])
    // Kafka no longer has an event of the known attempt.
    const later = readBackStory(given('queued', { attempt: 1, version: 4 }), {
      ...story,
      submitted: submittedUnder([5]),
    })
    assert.deepEqual([later.sent, later.after.attempt, later.after.doubted], [true, 2, true])
    const known = readBackStory(given('processing'), { ...story, submitted: submittedUnder([3]) }, [], {
      transitions: [],
      submitted: [...submittedUnder([3])],
    }).after
    assert.deepEqual([known.attempt, known.doubted, known.agentpayOrderId], [1, false, 'AP1'])
  })

  test('failed after paid, or paid after failed, changes nothing and is an anomaly', () => {
    const said = (status: string, state: string) =>
      `the gateway reports ${status} for a payout that is ${state}`
    anomalous(settled(given('paid'), report('failed')), 'contradiction', said('failed', 'paid'))
    anomalous(settled(given('failed'), report('success')), 'contradiction', said('success', 'failed'))
  })

  test('the reported facts identify an anomaly: the same facts, by callback or query, make the same one', () => {
    const idOf = (decision: Decision) => anomalyId('anomaly' in decision ? decision.anomaly : assert.fail())
    const paid = given('paid', { agentpayOrderId: 'AP1', utr: 'UTR1' })
    const amount = paise(100n)
    const settings: [what: string, payout: Payout, said: Partial<OrderReport>][] = [
      ['of another order', paid, { agentpayOrderId: 'AP2' }],
      ['for another amount', given('processing'), { amount }],
      ['of another series', given('processing'), { mchOrderNo: 'PORDER2' }],
      ['never sent', given('queued'), {}],
      ['of what was rejected', given('rejected', { attempt: 1 }), {}],
      ['with several readings', given('processing'), { doubt: 'several-readings' }],
    ]
    for (const [what, payout, said] of settings) {
      const id = (fields: Partial<OrderReport>, source: 'CALLBACK' | 'QUERY' = 'CALLBACK') =>
        idOf(
          applyEvidence(payout, report('processing', { utr: null, ...said, ...fields }), source, POLICY, NOW),
        )
      const first = id({})
      assert.equal(id({ fee: null, exchange: { tookMs: 5 } }, 'QUERY'), first, what)
      const others = [id({ status: 'success' }), id({ utr: 'UTR2' }), id({ status: 'success', utr: 'UTR2' })]
      assert.equal(new Set([first, ...others]).size, 4, what)
      assert.equal(new Set([first, id({ agentpayOrderId: 'AP3' })]).size, 2, what)
    }
    const unlisted = (word: string) =>
      idOf(settled(given('processing'), report('unlisted', { unlisted: word })))
    assert.notEqual(unlisted('status 7'), unlisted('status 9'))
  })

  test('a report of another amount ends nothing', () => {
    for (const [amount, says] of [
      [paise(5_000_100n), '₹50,001.00'],
      [null, 'no amount'],
    ] as const) {
      const reported = report('success', { amount })
      const said = `the gateway says ${says}, ours is ₹50,000.00`
      anomalous(settled(given('processing'), reported), 'amount-mismatch', said)
    }
  })

  test('the failure of an order after which a person sent it again does not end the next attempt', () => {
    let payout = given('unknown', { attempt: 2, doubted: true, absenceConfirmed: true, dueAt: null })
    for (let i = 1; i <= POLICY.confirmations; i++) {
      const at = NOW + i * 10 * POLICY.graceMs
      const decision = applyEvidence(payout, report('failed'), 'QUERY', POLICY, at, at)
      assert.ok('change' in decision)
      payout = decision.change.after
    }
    assert.deepEqual([payout.state, payout.reason], ['review', 'failed-in-doubt'])
  })

  test('a report of another amount that contradicts an end is a contradiction', () => {
    for (const amount of [paise(4_990_000n), paise(0n), null])
      for (const [state, status] of [
        ['paid', 'failed'],
        ['failed', 'success'],
      ] as const) {
        const decision = settled(given(state), report(status, { amount }))
        assert.ok('anomaly' in decision)
        assert.equal(decision.anomaly.kind, 'contradiction')
        assert.ok(decision.anomaly.detail.startsWith(contradicts(status, state)))
      }
    const weaker = settled(given('paid'), report('processing', { amount: null }))
    anomalous(weaker, 'amount-mismatch', 'the gateway says no amount, ours is ₹50,000.00')
  })

  test('a report of another order number, or another platform order number, ends nothing', () => {
    anomalous(
      settled(given('processing'), report('success', { mchOrderNo: 'PORDER2' })),
      'order-mismatch',
      'the order number is of another attempt series',
    )
    anomalous(
      settled(given('processing'), report('success', { agentpayOrderId: 'AP9' })),
      'order-id-mismatch',
      'the gateway says AP9, but the payout has AP1',
    )
  })

  test('fields that a report leaves out stay as they are, and new fields are taken over', () => {
    const known = given('processing', { fee: paise(400n), utr: 'UTR0' })
    const mute = { agentpayOrderId: null, fee: null, utr: null }
    for (const state of ['processing', 'unknown'] as const) {
      const after = moved(settled({ ...known, state }, report('success', mute)), 'paid')
      assert.deepEqual([after.agentpayOrderId, after.fee, after.utr], ['AP1', 400n, 'UTR0'])
    }
    const paid = moved(settled({ ...known, agentpayOrderId: null }, report('success')), 'paid')
    assert.deepEqual([paid.agentpayOrderId, paid.fee, paid.utr], ['AP1', 500n, '632611200001'])
    assert.equal(absorbed(settled(given('processing'), report('processing'))).fee, 500n)
    assert.equal(moved(settled(given('unknown'), report('processing')), 'processing').fee, 500n)
  })

  test('an unpaid payout has no fee, whoever ended it and whatever the gateway named before', () => {
    const known = given('processing', { fee: paise(400n) })
    assert.equal(moved(settled(known, report('failed')), 'failed').fee, null)
    assert.equal(absorbed(recordApply(given('failed'), 1, accepted, POLICY, NOW)).fee, null)
    assert.equal(become(given('review', { fee: paise(400n) }), 'failed', {}).fee, null)
    assert.equal(become(given('review', { fee: paise(400n) }), 'paid', {}).fee, 400n)
  })

  test('a second report of payment, by callback or query, fills missing fields and changes no known one', () => {
    for (const source of ['CALLBACK', 'QUERY'] as const) {
      const paid = given('paid')
      const after = absorbed(settled(paid, report('success'), source))
      assert.deepEqual(after, { ...paid, agentpayOrderId: 'AP1', fee: 500n, utr: '632611200001' })
      const complete = given('paid', { agentpayOrderId: 'AP1', fee: paise(500n), utr: '632611200001' })
      assert.equal(absorbed(settled(complete, report('success'), source)), complete)
      assert.equal(absorbed(settled(complete, report('success', { utr: null, fee: null }), source)), complete)
      assert.equal(absorbed(settled(paid, report('processing', { utr: 'UTR1' }), source)), paid)
      assert.equal(absorbed(settled(given('failed'), report('failed', { utr: 'UTR1' }), source)).utr, null)
    }
  })

  test('another UTR or fee of a paid payout is an anomaly, whoever reported the known one', () => {
    const byHand = become(given('review'), 'paid', { utr: 'UTR0' })
    for (const source of ['CALLBACK', 'QUERY'] as const) {
      const said = 'the gateway says UTR 632611200001, but the payout has UTR0'
      for (const paid of [byHand, given('paid', { utr: 'UTR0' })]) {
        const decision = settled(paid, report('success'), source)
        anomalous(decision, 'utr-mismatch', said)
        assert.ok(!('change' in decision))
      }
      const same = settled(
        given('paid', { utr: 'utr1' }),
        report('success', { utr: 'UTR1', fee: null }),
        source,
      )
      assert.equal(absorbed(same).utr, 'utr1')
      const fee = settled(given('paid', { fee: paise(400n) }), report('success'), source)
      anomalous(fee, 'fee-mismatch', 'the gateway says a fee of ₹5.00, but the payout has ₹4.00')
    }
  })

  describe('a late sign of life', () => {
    const noted = { by: 'asha', reason: 'the bank says so' }
    const failed: Record<string, Decision | { refused: unknown }> = {
      'a person': resolve(given('review'), { kind: 'failed' }, noted, NOW),
      'a refusal': recordAbsence(
        given('unknown', { reason: 'refused', refusal: 'closed', notFoundCount: 1 }),
        exchange,
        { askedAt: NOW, presence: true },
        POLICY,
        NOW,
      ),
      'absence after a refusal': recordAbsence(
        given('unknown', { refusal: 'closed', notFoundCount: 1 }),
        exchange,
        { askedAt: NOW, presence: true },
        POLICY,
        NOW,
      ),
    }
    for (const [who, decision] of Object.entries(failed)) {
      test(`contradicts an end from ${who}`, () => {
        assert.ok('change' in decision)
        const payout = moved(decision, 'failed')
        for (const status of ['pending', 'processing'] as const)
          for (const source of ['CALLBACK', 'QUERY'] as const) {
            const said = `the gateway reports ${status} for a payout that is failed`
            anomalous(settled(payout, report(status), source), 'contradiction', said)
          }
        const late = (answer: ApplyAnswer) => recordApply(payout, 1, answer, POLICY, NOW)
        const there = 'apply was accepted as AP1 (processing), yet the payout is failed'
        anomalous(late(accepted), 'contradiction', there)
        const known = 'apply says that the order is there (DUPLICATE_ORDER), yet the payout is failed'
        anomalous(late(duplicate), 'contradiction', known)
        for (const answer of [refused, notSent, tooFast, unknown]) absorbed(late(answer))
      })
    }

    test('contradicts a published cancellation that a restored ledger has taken over', () => {
      const there = 'apply was accepted as AP1 (processing), yet the payout is cancelled'
      anomalous(recordApply(given('cancelled'), 1, accepted, POLICY, NOW), 'contradiction', there)
    })

    test('contradicts a published failure that a restored ledger has taken over, unless it came from a callback', () => {
      const { amount, currency, orderNo } = given('queued')
      for (const evidence of ['OPERATOR', 'APPLY', 'QUERY', 'CALLBACK'] as const) {
        const end = {
          ...({
            status: 'failed',
            version: 9,
            reason: 'closed',
            evidence,
            orderNo,
            amount,
            currency,
          } as const),
          ...{ agentpayOrderId: null, fee: null, utr: null, at: NOW + 4, asEvent: true, asResult: true },
        }
        const story = { ...nothingPublished(), submitted: submittedUnder([8]), ends: [end], highest: 9 }
        const { after } = readBackStory(given('queued'), story)
        const decision = settled(after, report('processing'))
        if (evidence === 'CALLBACK') absorbed(decision)
        else
          anomalous(decision, 'contradiction', 'the gateway reports processing for a payout that is failed')
      }
    })

    test('and a published end without a fee leaves the known fee', () => {
      const fee = paise(500n)
      const payout = given('processing', { fee })
      const { amount, currency, orderNo, version } = payout
      const published = { evidence: 'QUERY', reason: null, orderNo, amount, currency, at: NOW } as const
      const details = { agentpayOrderId: null, fee: null, utr: null, asEvent: true, asResult: false }
      const end = { ...published, ...details, status: 'paid' as const, version: version + 1 }
      const { after } = readBackStory(payout, { ...nothingPublished(), ends: [end], highest: end.version })
      assert.deepEqual([after.state, after.fee], ['paid', fee])
    })

    test('agrees with an end that the gateway reported', () => {
      for (const end of ['success', 'failed'] as const) {
        const ended = settled(given('processing'), report(end))
        assert.ok('change' in ended)
        const { after } = ended.change
        absorbed(settled(after, report('processing')))
        absorbed(recordApply(after, 1, accepted, POLICY, NOW))
      }
    })
  })

  test('a status that is not in the contract ends nothing', () => {
    const said = 'the status is not in the contract'
    anomalous(settled(given('processing'), report('unlisted')), 'unlisted-status', said)
  })

  describe('a report that is in doubt, whatever it says,', () => {
    const doubts = ['of-a-request', 'several-readings', 'unsigned-parameters'] as const
    const doubtful = (payout: Payout, doubt: (typeof doubts)[number]) =>
      applyEvidence(
        payout,
        report('success', { doubt, amount: null, agentpayOrderId: 'AP2' }),
        'CALLBACK',
        POLICY,
        NOW,
      )
    const after = (decision: Decision) => {
      assert.ok('change' in decision)
      return decision.change.after
    }

    test('moves the next query to now, and changes nothing else, except that it may show an order', () => {
      for (const doubt of doubts) {
        const orderShown = doubt !== 'of-a-request'
        for (const state of ['unknown', 'processing'] as const) {
          const before = given(state, { dueAt: NOW + HOUR / 2 })
          assert.deepEqual(after(doubtful(before, doubt)), { ...before, orderShown, dueAt: NOW })
          const due = given(state, { dueAt: NOW - 1 })
          assert.deepEqual(after(doubtful(due, doubt)), { ...due, orderShown })
        }
        for (const state of ['submitting', 'review'] as const) {
          const before = given(state)
          assert.deepEqual(after(doubtful(before, doubt)), { ...before, orderShown })
        }
        for (const state of ['paid', 'failed'] as const) {
          const before = given(state)
          assert.deepEqual(after(doubtful(before, doubt)), before)
        }
      }
    })

    test('keeps the first wait between two queries, however often it comes', () => {
      const [first] = POLICY.queryAfterMs as [number]
      const justAsked = given('processing', { askedAt: NOW - 1, dueAt: NOW + HOUR / 2 })
      assert.equal(after(doubtful(justAsked, 'several-readings')).dueAt, NOW - 1 + first)
    })

    test('is an anomaly if the signed text has another reading', () => {
      const said =
        'the signed text can be read in more than one way, so it changes nothing and payoutd queries the gateway'
      anomalous(doubtful(given('processing'), 'several-readings'), 'ambiguous-callback', said)
      const unsigned = doubtful(given('processing'), 'unsigned-parameters')
      assert.deepEqual('change' in unsigned && unsigned.change.exchange, exchange)
      assert.ok(!('anomaly' in unsigned))
    })

    test('still shows that the ledger was set back, unless it may be one of payoutd’s own requests sent back', () => {
      const kindOf = (decision: Decision) => 'anomaly' in decision && decision.anomaly.kind
      assert.equal(kindOf(doubtful(given('queued'), 'unsigned-parameters')), 'never-sent')
      assert.equal(kindOf(doubtful(given('queued'), 'several-readings')), 'never-sent')
      assert.equal(kindOf(doubtful(given('queued'), 'of-a-request')), 'request-sent-back')
    })
  })

  test('"processing" clears the doubts that a "not found" began', () => {
    const doubted = given('processing', { unknownSince: NOW - 5_000, notFoundCount: 1 })
    const found = absorbed(settled(doubted, report('processing')))
    assert.deepEqual([found.unknownSince, found.notFoundCount], [null, 0])
  })

  test('"processing" does not move an expired payout out of review', () => {
    absorbed(settled(given('review', { deadline: NOW }), report('processing')))
    moved(settled(given('review', { deadline: NOW + 1 }), report('processing')), 'processing')
    moved(settled(given('unknown', { deadline: NOW }), report('processing')), 'processing')
  })
})

test('what was counted before answers were mixed up counts no more, and the grace begins anew', () => {
  const doubted = given('unknown', { unknownSince: NOW, notFoundCount: 1 })
  for (const before of [null, NOW - 1, NOW]) assert.deepEqual(doubtedAnew(doubted, before), doubted)
  const anew = doubtedAnew(doubted, NOW + 1)
  assert.deepEqual([anew.unknownSince, anew.notFoundCount], [NOW + 1, 0])
  assert.deepEqual(doubtedAnew({ ...anew, notFoundCount: 1 }, NOW + 1).notFoundCount, 1)
})

describe('a "not found"', () => {
  const absent = (payout: Payout, presence = true, queryPolicy = POLICY, askedAt = NOW) =>
    attributed(recordAbsence(payout, exchange, { askedAt, presence }, queryPolicy, NOW), 'QUERY', exchange)

  test('counts if others precede it, and the last one confirms absence: sent again under the same order number', () => {
    const once = absorbed(absent(given('unknown')))
    assert.deepEqual([once.notFoundCount, once.queries, once.dueAt], [1, 1, NOW + 9_000])
    const after = moved(absent(once), 'queued')
    assert.deepEqual([after.orderNo, after.ready, after.reason], ['PORDER1', true, 'proved-absent'])
    assert.deepEqual([after.accountId, after.doubted], ['here', true])
  })

  test('goes to a person if the gateway does not promise to refuse duplicates', () => {
    const after = moved(absent(given('unknown', { notFoundCount: 1 }), true, NO_RESEND), 'review')
    assert.equal(after.reason, 'proved-absent')
  })

  test('does not count within the grace period', () => {
    const after = absorbed(absent(given('unknown', { unknownSince: NOW - 4_999, notFoundCount: 1 })))
    assert.equal(after.notFoundCount, 1)
  })

  test('does not count without a presence check', () => {
    const after = absorbed(absent(given('unknown', { notFoundCount: 1 }), false))
    assert.equal(after.notFoundCount, 1)
  })

  test('does not count if payoutd asked within the grace period, however late it comes', () => {
    const unknown = given('unknown', { unknownSince: NOW - 5_000, notFoundCount: 1 })
    assert.equal(absorbed(absent(unknown, true, POLICY, NOW - 1)).notFoundCount, 1)
  })

  test('begins the doubts about an order that the gateway had, and after the grace period a person decides', () => {
    for (const agentpayOrderId of ['AP1', null]) {
      const first = absorbed(absent(given('processing', { agentpayOrderId })))
      assert.deepEqual([first.unknownSince, first.notFoundCount], [NOW, 0])
      const once = absorbed(absent({ ...first, unknownSince: NOW - 5_000 }))
      assert.equal(moved(absent(once), 'review').reason, 'not-found')
    }
    const named = given('unknown', { agentpayOrderId: 'AP1', notFoundCount: 1 })
    assert.equal(moved(absent(named), 'review').reason, 'not-found')
  })

  test('leads to another query before the deadline', () => {
    assert.equal(absorbed(absent(given('unknown', { deadline: NOW + 1_000 }))).dueAt, NOW + 1_000)
  })

  test('changes nothing after the payout has moved on', () => {
    assert.deepEqual(absent(given('paid')), { nothing: true })
  })
})

test('payoutd repeats a query without an answer later; it proves nothing', () => {
  const unanswered = (payout: Payout) =>
    attributed(recordNoAnswer(payout, exchange, POLICY, NOW), 'QUERY', exchange)
  for (const state of ['unknown', 'processing'] as const) {
    const after = absorbed(unanswered(given(state, { notFoundCount: 1 })))
    assert.deepEqual([after.queries, after.notFoundCount], [1, 1])
  }
  const waits = Array.from({ length: 1_000 }, (_, i) => {
    const payout = given('unknown', { orderNo: orderNumber('acme', `salary-${i}`, 1) })
    return (absorbed(unanswered(payout)).dueAt ?? 0) - NOW
  })
  // The wait is 9 s: some are due in each second from 4.5 s to 13.5 s.
  assert.deepEqual([Math.min(...waits) >= 4_500, Math.max(...waits) <= 13_500], [true, true])
  for (let second = 5; second < 13; second++)
    assert.ok(waits.filter((ms) => Math.floor(ms / 1_000) === second).length > 50, `${second} s`)
  assert.equal(absorbed(unanswered(given('unknown', { deadline: NOW + 1_000 }))).dueAt, NOW + 1_000)
  assert.deepEqual(unanswered(given('paid')), { nothing: true })
})

describe('time', () => {
  const due = (payout: Payout) => {
    const decision = onTimer(payout, POLICY, NOW)
    return 'ask' in decision ? decision : attributed(decision, 'CLOCK', null)
  }
  const expired = { deadline: NOW }

  test('releases a scheduled payout', () => {
    const after = moved(due(given('held', { dueAt: null })) as Decision, 'queued')
    assert.deepEqual([after.ready, after.dueAt], [true, NOW + HOUR])
  })

  test('leaves a payout that waits for a release until its deadline, and then cancels it', () => {
    for (const reason of HOLD_REASONS) {
      const held = given('held', { reason, dueAt: NOW })
      assert.equal(absorbed(due(held) as Decision).dueAt, held.deadline)
      assert.equal(moved(due({ ...held, ...expired }) as Decision, 'cancelled').reason, 'expired')
    }
  })

  test('ends a back-off without a new version', () => {
    const after = absorbed(due(given('queued', { ready: false, attempt: 1 })) as Decision)
    assert.deepEqual([after.ready, after.dueAt], [true, NOW + HOUR])
  })

  test('an ended lease makes the result unknown', () => {
    const after = moved(due(given('submitting')) as Decision, 'unknown')
    assert.deepEqual([after.reason, after.unknownSince, after.dueAt], ['lease-ended', NOW, NOW + 3_000])
  })

  test('payoutd asks about unknown and processing', () => {
    assert.deepEqual(due(given('unknown')), { ask: true })
    assert.deepEqual(due(given('processing')), { ask: true })
  })

  test('cancels a payout that was never sent as expired, past its deadline', () => {
    assert.equal(moved(due(given('queued', expired)) as Decision, 'cancelled').reason, 'expired')
    assert.equal(moved(due(given('held', expired)) as Decision, 'cancelled').reason, 'expired')
    const unsent = given('queued', { ...expired, attempt: 2 })
    assert.equal(moved(due(unsent) as Decision, 'cancelled').reason, 'expired')
  })

  test('hands a payout that was sent to a person, past its deadline', () => {
    for (const state of ['held', 'queued', 'unknown', 'processing'] as const) {
      const sent = given(state, { ...expired, attempt: 1, accountId: 'here' })
      const after = moved(due(sent) as Decision, 'review')
      assert.deepEqual([after.reason, after.dueAt], ['expired', null])
    }
  })

  for (const state of ['review', 'paid', 'failed', 'rejected', 'cancelled'] as const) {
    test(`does nothing to a payout that is ${state}`, () => {
      assert.deepEqual(due(given(state, expired)), { nothing: true })
    })
  }

  test('does not cut a lease short at the deadline: its owner may still be sending', () => {
    const lease = NOW + 15_000
    const after = become(given('queued', { deadline: NOW + 1_000 }), 'submitting', {
      attempt: 1,
      dueAt: lease,
    })
    assert.equal(after.dueAt, lease)
  })

  test('never plans the next look beyond the deadline', () => {
    const after = moved(
      recordApply(given('submitting', { deadline: NOW + 1_000 }), 1, accepted, POLICY, NOW),
      'processing',
    )
    assert.equal(after.dueAt, NOW + 1_000)
  })
})

describe('a request to cancel', () => {
  const why = words({ by: 'hr', reason: 'left the company' })
  const asked = (payout: Payout) => attributed(cancel(payout, 'COMMAND', why), 'COMMAND', { note: why })

  test('cancels a payout that the gateway cannot have', () => {
    for (const state of ['queued', 'held'] as const) {
      const after = moved(asked(given(state)), 'cancelled')
      assert.deepEqual([after.reason, after.dueAt], ['cancelled', null])
    }
  })

  test('waits, without a version, while the ledger may have lost attempts, and is then carried out', () => {
    for (const state of ['queued', 'held'] as const) {
      const payout = given(state, { ready: true })
      const after = absorbed(cancel(payout, 'OPERATOR', why, { fenced: true }))
      assert.deepEqual([after.cancelRequest, after.ready, after.dueAt], [why, false, payout.dueAt])
      moved(onTimer(after, POLICY, NOW) as Decision, 'cancelled')
    }
  })

  test('that waits prevents a release', () => {
    const asked = absorbed(cancel(given('held', { reason: 'duplicate' }), 'OPERATOR', why, { fenced: true }))
    assert.deepEqual(release(asked, NOW, why, NOW), { nothing: true })
  })

  test('cancels a waiting payout if no byte of its attempts left, and hands any other to a person', () => {
    moved(asked(given('queued', { attempt: 2 })), 'cancelled')
    for (const left of [{ accountId: 'here' }, { doubted: true }, { turnedAway: true }]) {
      assert.equal(moved(asked(given('queued', { attempt: 1, ...left })), 'review').reason, CANCEL_REQUESTED)
    }
  })

  describe('that came while it was under way is not forgotten:', () => {
    const wanted = (state: State, fields: Partial<Payout> = {}) => absorbed(asked(given(state, fields)))

    const record = (payout: Payout, answer: ApplyAnswer) =>
      recordApply(payout, payout.attempt, answer, POLICY, NOW)

    test('a payout that was not sent after all is not sent any more', () => {
      const after = moved(record(wanted('submitting'), notSent), 'cancelled')
      assert.deepEqual([after.reason, after.dueAt], ['cancelled', null])
      moved(record(wanted('unknown'), notSent), 'cancelled')
      moved(record(wanted('submitting', { attempt: 2, doubted: true }), notSent), 'review')
    })

    test('after a "later", and after a confirmed absence, a person decides', () => {
      const turnedAway = wanted('unknown', { reason: 'later', unknownSince: 0, notFoundCount: 1 })
      const found = { askedAt: NOW, presence: true }
      const later = moved(recordAbsence(turnedAway, exchange, found, POLICY, NOW), 'review')
      assert.deepEqual([later.reason, later.ready, later.turnedAway], [CANCEL_REQUESTED, false, true])
      const payout = wanted('unknown', { notFoundCount: POLICY.confirmations - 1, unknownSince: 0 })
      const query = { askedAt: NOW, presence: true }
      const absent = moved(recordAbsence(payout, exchange, query, POLICY, NOW), 'review')
      assert.deepEqual([absent.reason, absent.doubted], [CANCEL_REQUESTED, true])
    })

    test('a payout that the gateway has ends as the gateway reports', () => {
      moved(applyEvidence(wanted('unknown'), report('success'), 'QUERY', POLICY, NOW), 'paid')
    })
  })

  test('adds nothing to a cancelled payout', () => {
    assert.deepEqual(cancel(given('cancelled'), 'OPERATOR', why), { nothing: true })
  })

  for (const state of STATES.filter((each) => !['held', 'queued', 'cancelled'].includes(each))) {
    test(`comes too late for ${state}, and is kept in its history`, () => {
      absorbed(asked(given(state)))
    })
  }
})

test('a move clears the fields of the former state', () => {
  const doubted = given('unknown', { reason: 'timeout', ready: true, queries: 3, notFoundCount: 1 })
  const { reason, unknownSince, ready, queries, notFoundCount } = become(doubted, 'processing', {})
  assert.deepEqual([reason, unknownSince, ready, queries, notFoundCount], [null, null, false, 0, 0])
})

test('a move that the state table forbids is a bug, and throws', () => {
  assert.throws(() => become(given('paid'), 'queued', {}), {
    message: 'payout acme:salary-1 cannot go from paid to queued',
  })
  const sent = given('queued', { attempt: 1, accountId: 'here' })
  assert.throws(() => become(sent, 'cancelled', {}), /cannot go/)
})

describe('a release', () => {
  const held = given('held', { reason: 'duplicate', dueAt: NOW + HOUR })
  const released = (payout: Payout, paysAt = NOW) =>
    release(payout, paysAt, words({ by: 'asha', reason: 'two salaries' }), NOW)

  test("queues a payout that was held for a person, in that person's name", () => {
    const decision = released(held)
    const after = moved(decision, 'queued')
    assert.deepEqual([after.ready, after.dueAt, after.reason], [true, held.deadline, null])
    assert.ok('change' in decision)
    assert.deepEqual(
      [decision.change.source, decision.change.exchange],
      ['OPERATOR', { note: 'asha: two salaries' }],
    )
  })

  test('lets a payout wait for its time if that is still ahead', () => {
    const after = moved(released(held, NOW + 60_000), 'held')
    assert.deepEqual([after.reason, after.dueAt, after.ready], ['schedule', NOW + 60_000, false])
  })

  test('does not move a payout that waits for no release, or is past its deadline', () => {
    const others = [
      given('held', { reason: 'schedule' }),
      given('held', { reason: 'details-sealed' }),
      given('paid'),
    ]
    for (const payout of [...others, { ...held, deadline: NOW }]) {
      assert.deepEqual(released(payout), { nothing: true })
    }
  })
})

describe('a signed report that does not fit', () => {
  const unfit = [
    report('unlisted', { unlisted: 'status 9' }),
    report('processing', { amount: paise(1n) }),
    report('success', { amount: null }),
    report('success', { doubt: 'several-readings' }),
    report('success', { doubt: 'unsigned-parameters' }),
  ]
  const query = { askedAt: NOW, presence: true }
  const absent = (payout: Payout) => recordAbsence(payout, exchange, query, POLICY, NOW)
  const afterOf = (decision: Decision): Payout => {
    assert.ok('change' in decision)
    return decision.change.after
  }

  test('is a sign of life: no absence before it counts, and none after it sends the payout again or fails it', () => {
    for (const said of unfit) {
      for (const source of ['CALLBACK', 'QUERY'] as const) {
        for (const refusal of [null, 'account closed']) {
          const absentOnce = given('unknown', { notFoundCount: 1, refusal })
          const seen = afterOf(applyEvidence(absentOnce, said, source, POLICY, NOW))
          const again = absorbed(absent(seen))
          assert.equal(again.notFoundCount, 1)
          assert.equal(moved(absent(again), 'review').reason, 'not-found')
        }
      }
    }
  })

  test('keeps an answer to an apply from failing the payout or sending it again', () => {
    for (const said of unfit) {
      const seen = afterOf(applyEvidence(given('submitting'), said, 'CALLBACK', POLICY, NOW))
      for (const answer of [refused, tooFast, notSent])
        moved(recordApply(seen, 1, answer, POLICY, NOW), 'unknown')
    }
  })

  test('hands a payout that waits to be sent again to a person', () => {
    for (const said of unfit) {
      for (const state of ['queued', 'held'] as const) {
        const waits = given(state, { attempt: 1, accountId: 'here', doubted: true })
        const after = moved(applyEvidence(waits, said, 'CALLBACK', POLICY, NOW), 'review')
        assert.deepEqual([after.ready, after.reason, after.orderShown], [false, 'order-shown', true])
      }
    }
  })

  test('lets a person send again only once the absence of its order is confirmed', () => {
    const terms = { ...TERMS, duplicatesRefused: true }
    const resend = { kind: 'resend', attempt: 1, deadline: null, cancelRequest: null, terms } as const
    const shown = given('review', { orderShown: true })
    const by = { by: 'asha', reason: 'it is not there' }
    const refusal = resolve(shown, { ...resend, confirmedAbsentBy: null }, by, NOW)
    assert.deepEqual(refusal, { refused: { kind: 'gateway-had-it', agentpayOrderId: null } })
    const again = resolve(shown, { ...resend, confirmedAbsentBy: 'the gateway' }, by, NOW)
    assert.ok('change' in again)
    assert.equal(again.change.after.orderShown, false)
  })

  test('is of an attempt that the ledger lacks if the payout was never sent, and that may be at any account', () => {
    for (const state of ['held', 'queued', 'review'] as const) {
      const never = given(state, { attempt: 1, accountId: null, absenceConfirmed: true })
      const { doubted, absenceConfirmed, orderShown } = shown(never)
      assert.deepEqual([doubted, absenceConfirmed, orderShown], [true, false, true])
      assert.equal(shown({ ...never, accountId: 'here' }).doubted, false)
    }
  })

  test('a refused duplicate shows an order, so absence goes to a person', () => {
    const there = moved(recordApply(given('submitting'), 1, duplicate, NO_GRACE, NOW), 'unknown')
    const once = absorbed(recordAbsence(there, exchange, query, NO_GRACE, NOW))
    assert.equal(moved(recordAbsence(once, exchange, query, NO_GRACE, NOW), 'review').reason, 'not-found')
  })

  test('one of payoutd’s own requests sent back keeps a waiting payout from being sent until a query is answered', () => {
    for (const fields of [{}, { attempt: 1, doubted: true }, { ready: false, dueAt: NOW + 1 }]) {
      const said = report('success', { doubt: 'of-a-request' })
      const waits = absorbed(applyEvidence(given('queued', fields), said, 'CALLBACK', POLICY, NOW))
      assert.deepEqual([waits.ready, waits.dueAt, waits.orderShown], [false, waits.deadline, false])
      assert.deepEqual(recordNoAnswer(waits, exchange, POLICY, NOW), { nothing: true })
      const later = { ...query, askedAt: NOW + 1 }
      assert.equal(absorbed(recordAbsence(waits, exchange, later, POLICY, NOW)).ready, true)
      assert.deepEqual(recordAbsence(waits, exchange, query, POLICY, NOW), { nothing: true })
      const first = recordAbsence(waits, exchange, { ...later, presence: null }, POLICY, NOW)
      if (waits.doubted) assert.deepEqual(first, { nothing: true })
      else assert.equal(absorbed(first).ready, true)
      if (waits.attempt === 0) continue
      const unchecked = { ...later, presence: false }
      assert.deepEqual(recordAbsence(waits, exchange, unchecked, POLICY, NOW), { nothing: true })
      assert.deepEqual(recordAbsence(waits, exchange, later, inconclusive(POLICY), NOW), { nothing: true })
    }
    const unpublished = given('queued', { version: 0, ready: false, dueAt: NOW + HOUR })
    assert.deepEqual(absent(unpublished), { nothing: true })
  })
})

const NO_GRACE: QueryPolicy = { ...POLICY, graceMs: 0 }
const TERMS = { accountId: 'here', settingsHash: 'hash', notPaidCodes: [], deadlineMs: HOUR }
