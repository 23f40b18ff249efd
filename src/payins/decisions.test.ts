import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { paise } from '../domain/money.ts'
import { applyEvidence } from '../domain/payin/apply-evidence.ts'
import type {
  PayinCreateAnswer,
  PayinQueryAnswer,
  PayinRecoverAnswer,
  PayinReport,
} from '../domain/payin/gateway-answers.ts'
import { onTimer } from '../domain/payin/on-timer.ts'
import type { Payin, PayinDecision } from '../domain/payin/payin.ts'
import { readBackEnd } from '../domain/payin/read-back.ts'
import { recordCreate } from '../domain/payin/record-create-answer.ts'
import { recordNothingFound } from '../domain/payin/record-query-answer.ts'
import { recordRecovery } from '../domain/payin/record-recovery-answer.ts'
import { resolve } from '../domain/payin/resolve.ts'
import { isEnd, PAYIN_STATES, type PayinState } from '../domain/payin/states.ts'
import { become } from '../domain/payin/transition.ts'
import { QUERY_POLICY } from '../domain/payout/payout.fixture.ts'

const NOW = Date.UTC(2026, 10, 30, 9)
const HOUR = 3_600_000
const POLICY = {
  ...QUERY_POLICY,
  queryAfterMs: [3_000, 9_000, 27_000],
  graceMs: 5_000,
  confirmations: 2,
  duplicatesRefused: true,
}
const exchange = { note: 'as received' }
const CHECKOUT = {
  payMethod: 'urlJump',
  payUrl: 'https://pay.example.in/1',
  qrString: 'upi://1',
  url: null,
  upi: null,
}

const given = (state: PayinState, fields: Partial<Payin> = {}): Payin => ({
  merchantId: 'acme',
  payinId: 'CORDER1',
  accountId: 'here',
  amount: paise(50_000n),
  currency: 'INR',
  state,
  reason: null,
  version: 2,
  payOrderId: state === 'creating' || state === 'unknown' ? null : 'PO1',
  checkout: null,
  utr: null,
  paidAt: null,
  unknownSince: state === 'unknown' ? NOW - 60_000 : null,
  queries: 0,
  notFoundCount: 0,
  askedAnew: false,
  orderShown: false,
  askedAt: null,
  dueAt: NOW,
  createdAt: NOW - HOUR,
  expiresAt: NOW + HOUR,
  traceparent: null,
  ...fields,
})

const report = (status: PayinReport['status'], fields: Partial<PayinReport> = {}): PayinReport => ({
  mchOrderNo: 'CORDER1',
  payOrderId: 'PO1',
  status,
  amount: paise(50_000n),
  currency: 'INR',
  utr: status === 'paid' ? '632611200001' : null,
  productId: null,
  voucherMap: null,
  paidAt: status === 'paid' ? NOW - 1_000 : null,
  errorMessage: status === 'failed' ? 'payer declined' : null,
  notifyStatus: null,
  exchange,
  ...fields,
})

const accepted: PayinCreateAnswer = { kind: 'accepted', payOrderId: 'PO1', payParams: CHECKOUT, exchange }
const refused: PayinCreateAnswer = { kind: 'refused', code: 'AMOUNT_LIMIT', message: 'too small', exchange }
const tooFast: PayinCreateAnswer = { kind: 'retry-later', code: 'TOO_FAST', message: '', exchange }
const notSent: PayinCreateAnswer = { kind: 'not-sent', reason: 'connection-refused', exchange }
const duplicate: PayinCreateAnswer = { kind: 'duplicate', code: 'DUPLICATE_ORDER', exchange }
const timeout: PayinCreateAnswer = { kind: 'unknown', reason: 'timeout', exchange }
const notFound = { kind: 'not-found', exchange } as const
const silence = { kind: 'unknown', reason: 'timeout', exchange } as const

/** The payin after a decision that moved it: one version higher, with its evidence. */
function moved(decision: PayinDecision, to: PayinState): Payin {
  assert.ok('change' in decision, `expected a move to ${to}, got ${Object.keys(decision)}`)
  const { before, after } = decision.change
  assert.deepEqual([after.state, after.version], [to, before.version + 1])
  return after
}

/** The payin after a decision that kept its state. */
function stayed(decision: PayinDecision): Payin {
  assert.ok('change' in decision, `expected a change, got ${Object.keys(decision)}`)
  const { before, after } = decision.change
  assert.deepEqual([after.state, after.version], [before.state, before.version])
  return after
}

function anomalous(decision: PayinDecision, kind: string): void {
  assert.ok('anomaly' in decision, `expected an anomaly, got ${Object.keys(decision)}`)
  assert.deepEqual([decision.anomaly.kind, decision.anomaly.orderNo], [kind, 'CORDER1'])
}

describe('the answer to a creation', () => {
  const record = (payin: Payin, answer: PayinCreateAnswer) => recordCreate(payin, answer, POLICY, NOW)

  test('accepted: open, with the checkout parameters as they came, and a planned query', () => {
    const { payOrderId, checkout, dueAt } = moved(record(given('creating'), accepted), 'open')
    assert.deepEqual([payOrderId, checkout, dueAt], ['PO1', CHECKOUT, NOW + 3_000])
  })

  test('refused, too fast, or never sent: the payin failed with a reason, and payoutd looks at it again', () => {
    const reasons = [refused, tooFast, notSent].map((answer) => {
      const { reason, dueAt } = moved(record(given('creating'), answer), 'failed')
      return [reason, dueAt]
    })
    assert.deepEqual(reasons, [
      ['too small', NOW + HOUR],
      ['TOO_FAST', NOW + HOUR],
      ['connection-refused', NOW + HOUR],
    ])
  })

  test('a timeout or a duplicate is unknown, never failed, and payoutd asks the gateway', () => {
    for (const answer of [timeout, duplicate]) {
      const { unknownSince, dueAt } = moved(record(given('creating'), answer), 'unknown')
      assert.deepEqual([unknownSince, dueAt], [NOW, NOW + 3_000])
    }
    assert.equal(moved(record(given('creating'), timeout), 'unknown').reason, 'timeout')
  })

  test('that comes after the lease has ended still counts', () => {
    assert.deepEqual(moved(record(given('unknown'), accepted), 'open').checkout, CHECKOUT)
    moved(record(given('unknown'), refused), 'failed')
    assert.equal(stayed(record(given('unknown'), timeout)).unknownSince, NOW - 60_000)
  })

  test('that arrives after a callback keeps what the callback proved, and adds the checkout parameters', () => {
    for (const state of ['open', 'paid', 'expired', 'review'] as const) {
      assert.deepEqual(stayed(record(given(state), accepted)).checkout, CHECKOUT)
    }
    stayed(record(given('failed'), refused))
  })

  test('that contradicts the known state changes nothing', () => {
    for (const state of ['open', 'paid'] as const) anomalous(record(given(state), refused), 'contradiction')
    anomalous(record(given('paid', { payOrderId: 'PO2' }), accepted), 'order-id-mismatch')
    const absent = given('failed', { payOrderId: null, reason: 'proved-absent' })
    anomalous(record(absent, accepted), 'contradiction')
  })

  test('that names another order than a report before it leaves the payin to a person', () => {
    for (const state of ['creating', 'unknown', 'open', 'review'] as const) {
      const decision = record(given(state, { payOrderId: 'PO2' }), accepted)
      anomalous(decision, 'order-id-mismatch')
      assert.ok('change' in decision)
      const { after } = decision.change
      assert.deepEqual([after.state, after.reason, after.payOrderId], ['review', 'order-besides', 'PO2'])
    }
  })
})

describe('a report of the gateway', () => {
  const applied = (payin: Payin, said: PayinReport, source: 'CALLBACK' | 'QUERY' = 'CALLBACK') =>
    applyEvidence(payin, said, source, POLICY, NOW)

  test('paid ends a payin in any state but paid, even one that failed or expired', () => {
    for (const state of PAYIN_STATES.filter((state) => state !== 'paid')) {
      const { utr, paidAt, payOrderId, dueAt } = moved(applied(given(state), report('paid')), 'paid')
      assert.deepEqual([utr, paidAt, payOrderId, dueAt], ['632611200001', NOW - 1_000, 'PO1', null])
    }
  })

  test('nothing undoes paid: failed is then a contradiction, another UTR an anomaly, and anything else changes nothing', () => {
    const paid = given('paid', { utr: 'N632611200001', paidAt: NOW })
    anomalous(applied(paid, report('failed')), 'contradiction')
    for (const status of ['paid', 'pending'] as const)
      anomalous(applied(paid, report(status, { utr: '999' })), 'utr-mismatch')
    const same = [report('paid', { utr: 'n632611200001' }), report('paid', { utr: null })]
    for (const said of [report('pending', { utr: null }), ...same]) {
      const after = stayed(applied(paid, said))
      assert.deepEqual([after.utr, after.dueAt], ['N632611200001', NOW])
    }
  })

  describe('that is in doubt, whatever it says,', () => {
    const doubts = ['of-a-request', 'several-readings', 'unsigned-parameters'] as const
    const inDoubt = (payin: Payin, doubt: (typeof doubts)[number]) =>
      applied(payin, report('paid', { doubt, amount: null, payOrderId: 'POTHER', currency: 'USD' }))

    test('makes payoutd ask at once, even about a payin that had ended, and changes nothing else, except that it may show an order', () => {
      for (const doubt of doubts) {
        for (const state of ['unknown', 'open', 'failed', 'expired', 'review'] as const) {
          const before = given(state, { dueAt: NOW + HOUR })
          const orderShown = doubt !== 'of-a-request' && !isEnd(state)
          assert.deepEqual(stayed(inDoubt(before, doubt)), { ...before, orderShown, dueAt: NOW })
          const ended = given(state, { dueAt: null, queries: 1 })
          const asked = stayed(inDoubt(ended, doubt))
          assert.deepEqual(asked, { ...ended, orderShown, dueAt: NOW })
        }
        const creating = given('creating', { orderShown: doubt !== 'of-a-request' })
        assert.deepEqual(stayed(inDoubt(given('creating'), doubt)), creating)
        assert.deepEqual(stayed(inDoubt(given('paid'), doubt)), given('paid'))
      }
    })

    test('keeps the first wait between two queries', () => {
      const [first] = POLICY.queryAfterMs as [number]
      const justAsked = given('open', { askedAt: NOW - 1, dueAt: NOW + HOUR })
      assert.equal(stayed(inDoubt(justAsked, 'unsigned-parameters')).dueAt, NOW - 1 + first)
    })

    test('is an anomaly if the signed text has another reading', () => {
      anomalous(inDoubt(given('open'), 'several-readings'), 'ambiguous-callback')
      assert.ok(!('anomaly' in inDoubt(given('open'), 'unsigned-parameters')))
    })
  })

  test('a second paid report adds a UTR that the first left out; a report with another status adds none', () => {
    assert.equal(stayed(applied(given('paid'), report('paid'))).utr, '632611200001')
    const { utr, paidAt } = stayed(applied(given('paid'), report('pending', { utr: '999', paidAt: NOW })))
    assert.deepEqual([utr, paidAt], [null, null])
  })

  test('with an unlisted status is an anomaly and no end: it goes to a person once the time is over', () => {
    const odd = report('unlisted', { unlisted: 'status 5' })
    for (const state of PAYIN_STATES) {
      const decision = applied(given(state), odd)
      anomalous(decision, 'unlisted-status')
      if (isEnd(state)) assert.ok(!('change' in decision))
      else assert.deepEqual(stayed(decision), given(state, { orderShown: true }))
    }
    const again = applied(given('open'), odd, 'QUERY')
    assert.ok('anomaly' in again && again.anomaly.detail.includes('status 5'))
    assert.deepEqual([stayed(again).queries, stayed(again).dueAt], [1, NOW + 9_000])
    for (const state of ['open', 'unknown'] as const)
      assert.equal(moved(applied(given(state, { expiresAt: NOW }), odd, 'QUERY'), 'review').reason, 'expired')
    assert.equal(stayed(applied(given('expired', { queries: 9 }), odd, 'QUERY')).dueAt, NOW + HOUR)
  })

  describe('that names a payment and does not call it paid', () => {
    const naming = [
      report('pending', { utr: '632611200001' }),
      report('pending', { paidAt: NOW }),
      report('failed', { utr: '632611200001' }),
      report('unlisted', { unlisted: 'status 5', paidAt: NOW }),
      report('pending', { unreadable: ['channelPayNo "N123#45"'] }),
    ]

    test('is an anomaly and goes to a person, and from then on only "paid" or a person ends the payin', () => {
      for (const said of naming) {
        for (const state of ['creating', 'unknown', 'open'] as const) {
          const decision = applied(given(state, { expiresAt: NOW }), said, 'QUERY')
          anomalous(decision, 'payment-named')
          const inReview = moved(decision, 'review')
          assert.deepEqual([inReview.reason, inReview.dueAt], ['payment-named', NOW + 3_000])
          for (const later of [report('pending'), report('failed'), ...naming])
            assert.equal(stayed(applied(inReview, later, 'QUERY')).reason, 'payment-named')
          moved(applied(inReview, report('paid')), 'paid')
          const resolved = resolve(inReview, { kind: 'failed' }, { by: 'asha', reason: 'no money' }, NOW)
          assert.equal(resolved?.after.state, 'failed')
        }
        assert.equal(stayed(applied(given('review', { reason: 'expired' }), said)).reason, 'payment-named')
      }
    })

    test('is an anomaly about a payin that had ended unpaid', () => {
      for (const said of naming) {
        anomalous(applied(given('expired'), said), 'payment-named')
        const asked = applied(given('failed', { queries: 9 }), said, 'QUERY')
        anomalous(asked, 'payment-named')
        assert.equal(stayed(asked).dueAt, NOW + HOUR)
      }
    })
  })

  test('failed ends a payin with the gateway’s reason', () => {
    for (const state of ['creating', 'unknown', 'open', 'review'] as const) {
      assert.equal(moved(applied(given(state), report('failed')), 'failed').reason, 'payer declined')
    }
    stayed(applied(given('expired'), report('failed')))
  })

  test('pending proves that the gateway has the order', () => {
    for (const state of ['creating', 'unknown', 'review'] as const) {
      assert.equal(moved(applied(given(state), report('pending')), 'open').payOrderId, 'PO1')
    }
    const waiting = stayed(applied(given('open'), report('pending'), 'QUERY'))
    assert.deepEqual([waiting.queries, waiting.dueAt], [1, NOW + 9_000])
  })

  test('a query that finds it unpaid after its time makes it expire; a callback does not', () => {
    const old = given('open', { expiresAt: NOW })
    assert.equal(moved(applied(old, report('pending'), 'QUERY'), 'expired').dueAt, NOW + HOUR)
    stayed(applied(old, report('pending'), 'CALLBACK'))
    assert.equal(
      stayed(applied(given('open', { expiresAt: NOW + 5 }), report('pending'), 'QUERY')).dueAt,
      NOW + 5,
    )
  })

  test('after an unpaid end, payoutd looks again after an hour, then ever later, for a week after its time', () => {
    for (const state of ['expired', 'failed'] as const) {
      const status = state === 'failed' ? 'failed' : 'pending'
      const ended = moved(applied(given('open', { expiresAt: NOW }), report(status), 'QUERY'), state)
      const afterHours: number[] = []
      for (let payin = ended; payin.dueAt !== null; ) {
        afterHours.push((payin.dueAt - NOW) / HOUR)
        payin = stayed(applyEvidence(payin, report(status), 'QUERY', POLICY, payin.dueAt))
      }
      assert.deepEqual(afterHours, [1, 2, 4, 8, 16, 32, 64, 128, 168])
    }
  })

  test('with another amount, currency or platform number it ends nothing', () => {
    const open = given('open')
    anomalous(applied(open, report('paid', { amount: paise(49_900n) })), 'amount-mismatch')
    anomalous(applied(open, report('paid', { amount: null })), 'amount-mismatch')
    anomalous(applied(open, report('paid', { currency: 'USD' })), 'currency-mismatch')
    anomalous(applied(open, report('paid', { payOrderId: 'PO2' })), 'order-id-mismatch')
    moved(applied(open, report('paid', { currency: null, payOrderId: null })), 'paid')
  })

  test('that does not fit, as the answer to a query, is queried again until the payin’s time is over', () => {
    const other = report('pending', { amount: paise(49_900n) })
    const again = applied(given('open'), other, 'QUERY')
    assert.deepEqual([stayed(again).queries, stayed(again).dueAt], [1, NOW + 9_000])
    for (const state of ['open', 'unknown'] as const) {
      assert.equal(
        moved(applied(given(state, { expiresAt: NOW }), other, 'QUERY'), 'review').reason,
        'expired',
      )
    }
    assert.equal(stayed(applied(given('failed', { queries: 2 }), other, 'QUERY')).dueAt, NOW + HOUR)
    assert.ok(!('change' in applied(given('paid', { dueAt: null }), report('failed'), 'QUERY')))
  })
})

describe('a signed report that does not fit', () => {
  const unfit = [
    report('unlisted', { unlisted: 'status 5' }),
    report('pending', { amount: paise(49_900n) }),
    report('pending', { currency: 'USD' }),
    report('paid', { doubt: 'several-readings' }),
    report('paid', { doubt: 'unsigned-parameters' }),
  ]
  const query = { askedAt: NOW, presence: true }

  test('is a sign of life: no absence before it counts, and none after it ends the payin', () => {
    for (const said of unfit) {
      for (const source of ['CALLBACK', 'QUERY'] as const) {
        const absentOnce = given('unknown', { notFoundCount: 1 })
        const seen = stayed(applyEvidence(absentOnce, said, source, POLICY, NOW))
        const again = stayed(recordNothingFound(seen, notFound, query, POLICY, NOW))
        assert.equal(again.notFoundCount, 1)
        assert.equal(
          moved(recordNothingFound(again, notFound, query, POLICY, NOW), 'review').reason,
          'not-found',
        )
      }
    }
  })

  test('keeps a creation that fails from ending the payin, as does a duplicate', () => {
    for (const said of unfit) {
      const seen = stayed(applyEvidence(given('creating'), said, 'CALLBACK', POLICY, NOW))
      for (const answer of [refused, tooFast, notSent])
        moved(recordCreate(seen, answer, POLICY, NOW), 'unknown')
    }
    const there = moved(recordCreate(given('creating'), duplicate, POLICY, NOW), 'unknown')
    assert.equal(there.orderShown, true)
  })

  test('and that calls the payin paid goes to a person at once, and time alone no longer ends the payin', () => {
    const others = [{ amount: paise(49_900n) }, { currency: 'USD' }, { payOrderId: 'PO2' }]
    for (const other of others) {
      for (const source of ['CALLBACK', 'QUERY'] as const) {
        const decision = applyEvidence(given('open'), report('paid', other), source, POLICY, NOW)
        assert.ok('anomaly' in decision && decision.anomaly.kind.endsWith('-mismatch'))
        const after = moved(decision, 'review')
        assert.deepEqual([after.payOrderId, after.utr, after.paidAt], ['PO1', null, null])
        stayed(applyEvidence(after, report('pending'), 'QUERY', POLICY, after.expiresAt))
        moved(applyEvidence(after, report('paid'), 'CALLBACK', POLICY, NOW), 'paid')
      }
    }
  })
})

describe('a query that finds nothing', () => {
  type Nothing = Exclude<PayinQueryAnswer, { kind: 'known' }>
  const applied = (payin: Payin, answer: Nothing, presence = true, askedAt = NOW) =>
    recordNothingFound(payin, answer, { askedAt, presence }, POLICY, NOW)

  test('confirms absence after enough answers, after the grace period and with a presence check', () => {
    const once = stayed(applied(given('unknown'), notFound))
    assert.deepEqual([once.notFoundCount, once.queries], [1, 1])
    assert.equal(moved(applied(once, notFound), 'failed').reason, 'proved-absent')
  })

  test('does not count within the grace period, without a presence check, or without an answer', () => {
    const almost = given('unknown', { notFoundCount: 1 })
    assert.equal(stayed(applied({ ...almost, unknownSince: NOW - 4_999 }, notFound)).notFoundCount, 1)
    assert.equal(stayed(applied(almost, notFound, false)).notFoundCount, 1)
    assert.equal(stayed(applied(almost, silence)).notFoundCount, 1)
  })

  test('does not count if payoutd asked within the grace period and the answer came after it', () => {
    const almost = given('unknown', { notFoundCount: 1, unknownSince: NOW - 5_000 })
    assert.equal(stayed(applied(almost, notFound, true, NOW - 1)).notFoundCount, 1)
    assert.equal(moved(applied(almost, notFound, true, NOW), 'failed').reason, 'proved-absent')
  })

  test('about an order that the gateway had begins a grace period of its own, and only counts in a row', () => {
    const doubted = stayed(applied(given('open'), notFound, true, NOW - 1))
    assert.deepEqual([doubted.notFoundCount, doubted.unknownSince], [0, NOW - 1])
    const later = stayed(applied({ ...doubted, unknownSince: NOW - 5_000 }, notFound))
    assert.equal(later.notFoundCount, 1)
    const found = stayed(applyEvidence(later, report('pending'), 'QUERY', POLICY, NOW))
    assert.deepEqual([found.notFoundCount, found.unknownSince], [0, null])
  })

  test('about an order that the gateway had named goes to a person', () => {
    assert.equal(
      moved(applied(given('open', { notFoundCount: 1, unknownSince: NOW - 60_000 }), notFound), 'review')
        .reason,
      'not-found',
    )
  })

  test('past the payin’s time goes to a person: nobody knows whether the payer paid', () => {
    for (const state of ['open', 'unknown'] as const) {
      assert.equal(moved(applied(given(state, { expiresAt: NOW }), silence), 'review').reason, 'expired')
    }
  })

  test('in a new round about an ended payin is repeated once for each wait of the query policy, then for a week after its time', () => {
    const first = stayed(applied(given('failed', { askedAnew: true }), notFound))
    assert.deepEqual([first.queries, first.dueAt], [1, NOW + 9_000])
    const last = stayed(applied({ ...first, queries: 2 }, notFound))
    assert.deepEqual([last.dueAt, last.askedAnew], [NOW + HOUR, false])
    const old = { ...last, expiresAt: NOW - 7 * 24 * HOUR }
    assert.equal(stayed(applied(old, notFound)).dueAt, null)
    assert.deepEqual(applied(given('paid'), silence), { nothing: true })
  })

  test('about a payin in review is repeated every hour, once the query policy has no waits left', () => {
    const fresh = moved(applied(given('open', { expiresAt: NOW, queries: 7 }), silence), 'review')
    assert.deepEqual([fresh.queries, fresh.dueAt], [8, NOW + 3_600_000])
    for (const answer of [notFound, silence])
      assert.equal(stayed(applied(fresh, answer)).dueAt, NOW + 3_600_000)
    assert.equal(stayed(applied({ ...fresh, queries: 0, askedAnew: true }, silence)).dueAt, NOW + 9_000)
  })
})

describe('a UTR recovery', () => {
  const record = (payin: Payin, answer: PayinRecoverAnswer) => recordRecovery(payin, answer, POLICY, NOW)
  const submitted: PayinRecoverAnswer = { kind: 'submitted', mchOrderNo: null, errorMessage: null, exchange }
  const used: PayinRecoverAnswer = { kind: 'refused', code: 'UTR_USED', message: '', exchange }

  test('that was submitted, or may have been, makes payoutd ask about the payin again, even if it had ended', () => {
    for (const answer of [submitted, silence]) {
      for (const state of ['open', 'failed', 'expired', 'review'] as const) {
        const { queries, dueAt } = stayed(record(given(state, { queries: 7, dueAt: null }), answer))
        assert.deepEqual([queries, dueAt], [0, NOW + 3_000])
      }
    }
  })

  test('that was refused, or came too late, only goes into the history', () => {
    assert.equal(stayed(record(given('failed', { dueAt: null }), used)).dueAt, null)
    assert.equal(stayed(record(given('paid', { dueAt: null }), submitted)).dueAt, null)
  })

  test('just before the time is over makes payoutd ask as often as usual, though the payin ends or goes to a person', () => {
    const recovered = stayed(record(given('open', { queries: 9, expiresAt: NOW + 1_000 }), submitted))
    const later = NOW + 3_000
    const asked = (payin: Payin, status: 'pending' | null) =>
      status
        ? applyEvidence(payin, report(status), 'QUERY', POLICY, later)
        : recordNothingFound(payin, silence, { askedAt: later, presence: true }, POLICY, later)
    for (const [status, end] of [
      ['pending', 'expired'],
      [null, 'review'],
    ] as const) {
      const first = moved(asked(recovered, status), end)
      const second = stayed(asked(first, status))
      const last = stayed(asked(second, status))
      assert.deepEqual([first.dueAt, second.dueAt, last.dueAt], [later + 9_000, later + 27_000, later + HOUR])
    }
    const failed = moved(applyEvidence(recovered, report('failed'), 'CALLBACK', POLICY, NOW), 'failed')
    assert.equal(failed.dueAt, NOW + 3_000)
  })
})

test('after any sequence of events payoutd looks at an unpaid end again for a week, and no payin ends unpaid after a named payment', () => {
  const ends = new Set<string>()
  const live = (gen: fc.GeneratorValue) => {
    const pick = <T>(among: readonly T[]): T => gen(() => fc.constantFrom(...among)) as T
    let payin = given('creating', { payOrderId: null, version: 1, expiresAt: NOW + 2 * HOUR })
    let isNamed = false
    for (let now = NOW, step = 0; step < 12; step++) {
      now += pick([0, 60_000, HOUR, 24 * HOUR])
      const source = pick(['CALLBACK', 'QUERY'] as const)
      const said = report(pick(['pending', 'paid', 'failed', 'unlisted'] as const), {
        utr: pick([null, null, null, '632611200001']),
        paidAt: null,
        amount: pick([payin.amount, payin.amount, paise(1n)]),
      })
      const published = {
        ...{
          status: pick(['failed', 'expired'] as const),
          version: pick([payin.version, payin.version + 1]),
        },
        ...{ amount: payin.amount, currency: 'INR', payOrderId: null, utr: null, paidAt: null, reason: null },
        evidence: 'QUERY' as const,
      }
      const what = pick([
        'create',
        'report',
        'report',
        'nothing',
        'recover',
        'person',
        'time',
        'read-back',
      ] as const)
      const before = payin
      const decision = ((): PayinDecision | { ask: true } | { after: Payin } | null => {
        switch (what) {
          case 'create':
            return recordCreate(
              payin,
              pick([accepted, refused, tooFast, notSent, duplicate, timeout]),
              POLICY,
              now,
            )
          case 'report':
            isNamed ||= said.status !== 'paid' && said.utr !== null && said.amount === payin.amount
            return applyEvidence(payin, said, source, POLICY, now)
          case 'nothing': {
            const asked = { askedAt: now, presence: true }
            return recordNothingFound(payin, pick([notFound, silence]), asked, POLICY, now)
          }
          case 'recover':
            return recordRecovery(payin, silence, POLICY, now)
          case 'person':
            return {
              after: resolve(payin, { kind: 'failed' }, { by: 'a', reason: 'r' }, now)?.after ?? payin,
            }
          case 'time':
            return onTimer(payin, POLICY, now)
          case 'read-back':
            return readBackEnd(payin, published, now)
        }
      })()
      if (decision && 'change' in decision) payin = decision.change.after
      else if (decision && 'after' in decision) payin = decision.after
      const isUnpaidEnd = payin.state === 'failed' || payin.state === 'expired'
      const story = `step ${step}: ${what} from ${before.state} to ${payin.state}`
      if (isUnpaidEnd && now < payin.expiresAt + 7 * 24 * HOUR) assert.ok(payin.dueAt !== null, story)
      if (isUnpaidEnd && before.state !== payin.state) {
        ends.add(`${what} ${payin.state}`)
        if (isNamed) assert.ok(what === 'person' || what === 'read-back', story)
      }
    }
  }
  fc.assert(fc.property(fc.gen(), live), { numRuns: 2_000, seed: 1 })
  const all = ['create failed', 'nothing failed', 'person failed', 'read-back expired', 'read-back failed']
  assert.deepEqual([...ends].sort(), [...all, 'report expired', 'report failed'].sort())
})

test('when its lease ends a creation is unknown; payoutd asks about everything else that is due', () => {
  const decision = onTimer(given('creating'), POLICY, NOW)
  assert.ok('change' in decision)
  const { reason, unknownSince, dueAt } = moved(decision, 'unknown')
  assert.deepEqual([reason, unknownSince, dueAt], ['lease-ended', NOW, NOW + 3_000])
  for (const state of ['unknown', 'open', 'failed', 'expired', 'review'] as const) {
    assert.deepEqual(onTimer(given(state), POLICY, NOW), { ask: true })
  }
})

test('nothing leaves paid, and only paid, failed and expired are published as results', () => {
  for (const state of PAYIN_STATES)
    assert.throws(() => become(given('paid'), state, NOW, {}), /cannot go from paid/)
  assert.deepEqual(PAYIN_STATES.filter(isEnd), ['paid', 'failed', 'expired'])
})

test('an unreadable field of a payment is an anomaly, and the payin is paid all the same', () => {
  const odd = report('paid', { utr: null, unreadable: ['channelPayNo "N123#45"'] })
  const decision = applyEvidence(given('open'), odd, 'CALLBACK', POLICY, NOW)
  assert.ok('anomaly' in decision && decision.anomaly.kind === 'unreadable-fields')
  assert.match(decision.anomaly.detail, /^the gateway says channelPayNo "N123#45", which payoutd cannot read/)
  assert.equal(moved(decision, 'paid').utr, null)
})
