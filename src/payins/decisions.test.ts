import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
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
import { recordCreate } from '../domain/payin/record-create.ts'
import { recordNothingFound } from '../domain/payin/record-query.ts'
import { recordRecovery } from '../domain/payin/record-recovery.ts'
import { isEnd, PAYIN_STATES, type PayinState } from '../domain/payin/states.ts'
import { become } from '../domain/payin/transition.ts'
import type { QueryPolicy } from '../domain/payout/next-query.ts'

const NOW = Date.UTC(2026, 10, 30, 9)
const HOUR = 3_600_000
const TABLE: QueryPolicy = {
  queryAfterMs: [3_000, 9_000, 27_000],
  graceMs: 5_000,
  confirmations: 2,
  resendWhenAbsent: true,
}
const exchange = { note: 'as heard' }
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

/** The payin after a decision that moved it: by one version, with its evidence. */
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
  const record = (payin: Payin, answer: PayinCreateAnswer) => recordCreate(payin, answer, TABLE, NOW)

  test('accepted: open, with the checkout parameters as they came, and a query is planned', () => {
    const { payOrderId, checkout, dueAt } = moved(record(given('creating'), accepted), 'open')
    assert.deepEqual([payOrderId, checkout, dueAt], ['PO1', CHECKOUT, NOW + 3_000])
  })

  test('refused, too fast, or never sent: the gateway has no order, so the payin failed, and says why', () => {
    const reasons = [refused, tooFast, notSent].map((answer) => {
      const { reason, dueAt } = moved(record(given('creating'), answer), 'failed')
      return [reason, dueAt]
    })
    assert.deepEqual(reasons, [
      ['too small', null],
      ['TOO_FAST', null],
      ['connection-refused', null],
    ])
  })

  test('a timeout or a duplicate is unknown, never failed, and the gateway is asked', () => {
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

  test('that a callback overtook keeps what the callback proved, and adds the checkout parameters', () => {
    for (const state of ['open', 'paid', 'expired', 'review'] as const) {
      assert.deepEqual(stayed(record(given(state), accepted)).checkout, CHECKOUT)
    }
    stayed(record(given('failed'), refused))
  })

  test('that contradicts what is known changes nothing', () => {
    for (const state of ['open', 'paid'] as const) anomalous(record(given(state), refused), 'contradiction')
    anomalous(record(given('open', { payOrderId: 'PO2' }), accepted), 'order-id-mismatch')
    const absent = given('failed', { payOrderId: null, reason: 'proved-absent' })
    anomalous(record(absent, accepted), 'contradiction')
  })
})

describe('a report of the gateway', () => {
  const hear = (payin: Payin, said: PayinReport, source: 'CALLBACK' | 'QUERY' = 'CALLBACK') =>
    applyEvidence(payin, said, source, TABLE, NOW)

  test('paid settles a payin in any state but paid: also one that failed or expired', () => {
    for (const state of PAYIN_STATES.filter((state) => state !== 'paid')) {
      const { utr, paidAt, payOrderId, dueAt } = moved(hear(given(state), report('paid')), 'paid')
      assert.deepEqual([utr, paidAt, payOrderId, dueAt], ['632611200001', NOW - 1_000, 'PO1', null])
    }
  })

  test('paid is never undone: failed is a contradiction then, another UTR an anomaly, and anything else is absorbed', () => {
    const paid = given('paid', { utr: 'N632611200001', paidAt: NOW })
    anomalous(hear(paid, report('failed')), 'contradiction')
    anomalous(hear(paid, report('paid', { utr: '999' })), 'utr-mismatch')
    const same = [report('paid', { utr: 'n632611200001' }), report('paid', { utr: null })]
    for (const said of [report('pending', { utr: '999' }), ...same]) {
      const after = stayed(hear(paid, said))
      assert.deepEqual([after.utr, after.dueAt], ['N632611200001', NOW])
    }
  })

  describe('that is in doubt, whatever it says,', () => {
    const doubts = ['several-readings', 'unsigned-parameters'] as const
    const heard = (payin: Payin, doubt: (typeof doubts)[number]) =>
      hear(payin, report('paid', { doubt, amount: null, payOrderId: 'POTHER', currency: 'USD' }))

    test('has a payin asked about at once, also one that had ended, and changes nothing else', () => {
      for (const doubt of doubts) {
        for (const state of ['unknown', 'open', 'failed', 'expired', 'review'] as const) {
          const before = given(state, { dueAt: NOW + HOUR })
          assert.deepEqual(stayed(heard(before, doubt)), { ...before, dueAt: NOW })
          const ended = given(state, { dueAt: null, queries: 1 })
          const asked = stayed(heard(ended, doubt))
          assert.deepEqual(asked, { ...ended, dueAt: NOW, queries: TABLE.queryAfterMs.length - 1 })
        }
        for (const state of ['creating', 'paid'] as const) {
          assert.deepEqual(stayed(heard(given(state), doubt)), given(state))
        }
      }
    })

    test('has it asked about no sooner after the last question than the first wait', () => {
      const [first] = TABLE.queryAfterMs as [number]
      const justAsked = given('open', { askedAt: NOW - 1, dueAt: NOW + HOUR })
      assert.equal(stayed(heard(justAsked, 'unsigned-parameters')).dueAt, NOW - 1 + first)
    })

    test('is an anomaly where the signed text has another reading', () => {
      anomalous(heard(given('open'), 'several-readings'), 'ambiguous-callback')
      assert.ok(!('anomaly' in heard(given('open'), 'unsigned-parameters')))
    })
  })

  test('paid again tells the UTR that the first report left out', () => {
    assert.equal(stayed(hear(given('paid'), report('paid'))).utr, '632611200001')
  })

  test('failed ends a payin with the gateway’s reason', () => {
    for (const state of ['creating', 'unknown', 'open', 'review'] as const) {
      assert.equal(moved(hear(given(state), report('failed')), 'failed').reason, 'payer declined')
    }
    stayed(hear(given('expired'), report('failed')))
  })

  test('pending proves that the gateway has the order', () => {
    for (const state of ['creating', 'unknown', 'review'] as const) {
      assert.equal(moved(hear(given(state), report('pending')), 'open').payOrderId, 'PO1')
    }
    const waiting = stayed(hear(given('open'), report('pending'), 'QUERY'))
    assert.deepEqual([waiting.queries, waiting.dueAt], [1, NOW + 9_000])
  })

  test('a query that finds it unpaid when its time is over lets it expire; a callback does not', () => {
    const old = given('open', { expiresAt: NOW })
    assert.equal(moved(hear(old, report('pending'), 'QUERY'), 'expired').dueAt, NOW + HOUR)
    stayed(hear(old, report('pending'), 'CALLBACK'))
    assert.equal(
      stayed(hear(given('open', { expiresAt: NOW + 5 }), report('pending'), 'QUERY')).dueAt,
      NOW + 5,
    )
  })

  test('that it ended unpaid has it looked at after an hour, then ever later, for a week after its time', () => {
    for (const state of ['expired', 'failed'] as const) {
      const status = state === 'failed' ? 'failed' : 'pending'
      const ended = moved(hear(given('open', { expiresAt: NOW }), report(status), 'QUERY'), state)
      const afterHours: number[] = []
      for (let payin = ended; payin.dueAt !== null; ) {
        afterHours.push((payin.dueAt - NOW) / HOUR)
        payin = stayed(applyEvidence(payin, report(status), 'QUERY', TABLE, payin.dueAt))
      }
      assert.deepEqual(afterHours, [1, 2, 4, 8, 16, 32, 64, 128, 168])
    }
  })

  test('with another amount, currency or platform number it settles nothing', () => {
    const open = given('open')
    anomalous(hear(open, report('paid', { amount: paise(49_900n) })), 'amount-mismatch')
    anomalous(hear(open, report('paid', { amount: null })), 'amount-mismatch')
    anomalous(hear(open, report('paid', { currency: 'USD' })), 'currency-mismatch')
    anomalous(hear(open, report('paid', { payOrderId: 'PO2' })), 'order-id-mismatch')
    moved(hear(open, report('paid', { currency: null, payOrderId: null })), 'paid')
  })

  test('that does not fit, as the answer to a query, is asked for again until the payin’s time is over', () => {
    const other = report('paid', { amount: paise(49_900n) })
    const again = hear(given('open'), other, 'QUERY')
    assert.deepEqual([stayed(again).queries, stayed(again).dueAt], [1, NOW + 9_000])
    for (const state of ['open', 'unknown'] as const) {
      assert.equal(moved(hear(given(state, { expiresAt: NOW }), other, 'QUERY'), 'review').reason, 'expired')
    }
    assert.equal(stayed(hear(given('failed', { queries: 2 }), other, 'QUERY')).dueAt, NOW + HOUR)
    assert.ok(!('change' in hear(given('paid', { dueAt: null }), report('failed'), 'QUERY')))
  })
})

describe('a query that finds nothing', () => {
  type Nothing = Exclude<PayinQueryAnswer, { kind: 'known' }>
  const hear = (payin: Payin, answer: Nothing, isPresenceChecked = true, askedAt = NOW) =>
    recordNothingFound(payin, answer, { askedAt, isPresenceChecked }, TABLE, NOW)

  test('proves absence once it was said often enough, after the grace period and with a presence check', () => {
    const once = stayed(hear(given('unknown'), notFound))
    assert.deepEqual([once.notFoundCount, once.queries], [1, 1])
    assert.equal(moved(hear(once, notFound), 'failed').reason, 'proved-absent')
  })

  test('does not count within the grace period, without a control, or when it is no answer', () => {
    const almost = given('unknown', { notFoundCount: 1 })
    assert.equal(stayed(hear({ ...almost, unknownSince: NOW - 4_999 }, notFound)).notFoundCount, 1)
    assert.equal(stayed(hear(almost, notFound, false)).notFoundCount, 1)
    assert.equal(stayed(hear(almost, silence)).notFoundCount, 1)
  })

  test('does not count when it was asked for within the grace period and told after it', () => {
    const almost = given('unknown', { notFoundCount: 1, unknownSince: NOW - 5_000 })
    assert.equal(stayed(hear(almost, notFound, true, NOW - 1)).notFoundCount, 1)
    assert.equal(moved(hear(almost, notFound, true, NOW), 'failed').reason, 'proved-absent')
  })

  test('about an order that the gateway had opens a grace period of its own, and counts in a row only', () => {
    const doubted = stayed(hear(given('open'), notFound, true, NOW - 1))
    assert.deepEqual([doubted.notFoundCount, doubted.unknownSince], [0, NOW - 1])
    const later = stayed(hear({ ...doubted, unknownSince: NOW - 5_000 }, notFound))
    assert.equal(later.notFoundCount, 1)
    const found = stayed(applyEvidence(later, report('pending'), 'QUERY', TABLE, NOW))
    assert.deepEqual([found.notFoundCount, found.unknownSince], [0, null])
  })

  test('about an order that the gateway had named goes to a person', () => {
    assert.equal(
      moved(hear(given('open', { notFoundCount: 1, unknownSince: NOW - 60_000 }), notFound), 'review').reason,
      'not-found',
    )
  })

  test('past the payin’s time goes to a person: nobody knows whether it was paid', () => {
    for (const state of ['open', 'unknown'] as const) {
      assert.equal(moved(hear(given(state, { expiresAt: NOW }), silence), 'review').reason, 'expired')
    }
  })

  test('about a payin that has ended is asked again as often as the query policy has waits, then for a week after its time', () => {
    const first = stayed(hear(given('failed'), notFound))
    assert.deepEqual([first.queries, first.dueAt], [1, NOW + 9_000])
    assert.equal(stayed(hear({ ...first, queries: 2 }, notFound)).dueAt, NOW + HOUR)
    const old = { ...first, queries: 2, expiresAt: NOW - 7 * 24 * HOUR }
    assert.equal(stayed(hear(old, notFound)).dueAt, null)
    assert.deepEqual(hear(given('paid'), silence), { nothing: true })
  })

  test('about a payin in review is asked again every hour, once the timetable has no waits left', () => {
    const fresh = moved(hear(given('open', { expiresAt: NOW, queries: 7 }), silence), 'review')
    assert.deepEqual([fresh.queries, fresh.dueAt], [7, NOW + 3_600_000])
    for (const answer of [notFound, silence]) assert.equal(stayed(hear(fresh, answer)).dueAt, NOW + 3_600_000)
    assert.equal(stayed(hear({ ...fresh, queries: 0 }, silence)).dueAt, NOW + 9_000)
  })
})

describe('a UTR recovery', () => {
  const record = (payin: Payin, answer: PayinRecoverAnswer) => recordRecovery(payin, answer, TABLE, NOW)
  const submitted: PayinRecoverAnswer = { kind: 'submitted', mchOrderNo: null, errorMessage: null, exchange }
  const used: PayinRecoverAnswer = { kind: 'refused', code: 'UTR_USED', message: '', exchange }

  test('that was submitted, or may have been, has the payin asked about anew, also one that had ended', () => {
    for (const answer of [submitted, silence]) {
      for (const state of ['open', 'failed', 'expired', 'review'] as const) {
        const { queries, dueAt } = stayed(record(given(state, { queries: 7, dueAt: null }), answer))
        assert.deepEqual([queries, dueAt], [0, NOW + 3_000])
      }
    }
  })

  test('that was refused, or came too late, only stands in the history', () => {
    assert.equal(stayed(record(given('failed', { dueAt: null }), used)).dueAt, null)
    assert.equal(stayed(record(given('paid', { dueAt: null }), submitted)).dueAt, null)
  })
})

test('when its lease ends a creation is unknown; everything else that is due is asked about', () => {
  const decision = onTimer(given('creating'), TABLE, NOW)
  assert.ok('change' in decision)
  const { reason, unknownSince, dueAt } = moved(decision, 'unknown')
  assert.deepEqual([reason, unknownSince, dueAt], ['lease-ended', NOW, NOW + 3_000])
  for (const state of ['unknown', 'open', 'failed', 'expired', 'review'] as const) {
    assert.deepEqual(onTimer(given(state), TABLE, NOW), { ask: true })
  }
})

test('nothing leaves paid, and what is published as a result is paid, failed or expired', () => {
  for (const state of PAYIN_STATES)
    assert.throws(() => become(given('paid'), state, {}), /cannot go from paid/)
  assert.deepEqual(PAYIN_STATES.filter(isEnd), ['paid', 'failed', 'expired'])
})

test('what cannot be read of a payment is an anomaly, and the payin is paid all the same', () => {
  const odd = report('paid', { utr: null, unreadable: ['channelPayNo "N123#45"'] })
  const decision = applyEvidence(given('open'), odd, 'CALLBACK', TABLE, NOW)
  assert.ok('anomaly' in decision && decision.anomaly.kind === 'unreadable-fields')
  assert.match(decision.anomaly.detail, /^the gateway says channelPayNo "N123#45", which cannot be read/)
  assert.equal(moved(decision, 'paid').utr, null)
})
