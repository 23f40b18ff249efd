import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ApplyAnswer } from './answers.ts'
import { cancel } from './cancel.ts'
import type { OrderReport } from './evidence.ts'
import { paise } from './money.ts'
import type { Decision, Payout } from './payout.ts'
import { recordApply } from './record-apply.ts'
import { recordAbsence, recordNoAnswer } from './record-query.ts'
import { settle } from './settle.ts'
import { STATES, type State } from './states.ts'
import { become, type Timetable } from './transition.ts'
import { whenDue } from './when-due.ts'

const NOW = Date.UTC(2026, 10, 30, 9)
const HOUR = 3_600_000
const TABLE: Timetable = {
  queryAfterMs: [3_000, 9_000],
  graceMs: 5_000,
  confirmations: 2,
  resendWhenAbsent: true,
}
const NO_RESEND: Timetable = { ...TABLE, resendWhenAbsent: false }
const exchange = { note: 'as heard' }

const given = (state: State, fields: Partial<Payout> = {}): Payout => ({
  merchantId: 'acme',
  payoutId: 'salary-1',
  batchId: 'november',
  orderNo: 'PORDER1',
  amount: paise(5_000_000n),
  currency: 'INR',
  state,
  reason: null,
  version: 3,
  attempt: state === 'held' || state === 'queued' ? 0 : 1,
  agentpayOrderId: state === 'processing' ? 'AP1' : null,
  fee: null,
  utr: null,
  deadline: NOW + HOUR,
  unknownSince: state === 'unknown' ? NOW - 60_000 : null,
  queries: 0,
  absences: 0,
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
const refused: ApplyAnswer = { kind: 'refused', code: 'IFSC_INVALID', message: 'no such branch', exchange }
const tooFast: ApplyAnswer = {
  kind: 'retry-later',
  code: 'TOO_FAST',
  message: '',
  balanceShort: false,
  exchange,
}
const duplicate: ApplyAnswer = { kind: 'duplicate', code: 'DUPLICATE_ORDER', exchange }

/** The payout after a decision that moved it: by one version, with its evidence. */
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

function anomalous(decision: Decision, kind: string): void {
  assert.ok('anomaly' in decision)
  assert.equal(decision.anomaly.kind, kind)
}

describe('an answer to apply', () => {
  const record = (payout: Payout, answer: ApplyAnswer, attempt = payout.attempt) =>
    recordApply(payout, attempt, answer, TABLE, NOW)

  test('accepted: processing, with the platform order number and fee, and a query is planned', () => {
    const after = moved(record(given('submitting'), accepted), 'processing')
    assert.deepEqual(
      [after.agentpayOrderId, after.fee, after.dueAt, after.reason],
      ['AP1', paise(500n), NOW + 3_000, null],
    )
  })

  for (const status of ['success', 'failed'] as const) {
    test(`accepted with status ${status} proves acceptance only, and is asked about at once`, () => {
      const after = moved(record(given('submitting'), { ...accepted, status }), 'processing')
      assert.equal(after.dueAt, NOW)
    })
  }

  test('refused: failed, with what the gateway said', () => {
    assert.equal(moved(record(given('submitting'), refused), 'failed').reason, 'no such branch')
  })

  test('a timeout after the bytes left is unknown, never failed', () => {
    const after = moved(record(given('submitting'), unknown), 'unknown')
    assert.deepEqual([after.reason, after.unknownSince, after.dueAt], ['timeout', NOW, NOW + 3_000])
  })

  test('duplicate: the gateway has the order, so it is asked, never failed', () => {
    assert.equal(moved(record(given('submitting'), duplicate), 'unknown').reason, 'duplicate')
  })

  for (const [name, answer] of [
    ['no byte left', notSent],
    ['retry later', tooFast],
  ] as const) {
    test(`${name}: queued again under the same order number, after a back-off that grows`, () => {
      const first = moved(record(given('submitting'), answer), 'queued')
      assert.equal(first.orderNo, 'PORDER1')
      assert.equal(first.ready, false)
      const fifth = moved(record(given('submitting', { attempt: 5 }), answer), 'queued')
      assert.ok((fifth.dueAt ?? 0) > (first.dueAt ?? 0) && (first.dueAt ?? 0) > NOW)
    })
  }

  test('a late answer to an attempt whose lease ended still tells what happened', () => {
    moved(record(given('unknown'), accepted), 'processing')
    moved(record(given('unknown'), refused), 'failed')
    moved(record(given('unknown'), notSent), 'queued')
    absorbed(record(given('unknown'), unknown))
  })

  test('an answer to an earlier attempt is evidence and moves nothing', () => {
    absorbed(record(given('submitting', { attempt: 2 }), refused, 1))
    absorbed(record(given('queued', { attempt: 1 }), notSent, 1))
  })

  test('an answer overtaken by its callback adds what the callback left out', () => {
    const after = absorbed(record(given('paid'), accepted))
    assert.deepEqual([after.agentpayOrderId, after.fee], ['AP1', paise(500n)])
  })

  test('refused, though the gateway paid it or has it: an anomaly', () => {
    anomalous(record(given('paid'), refused), 'contradiction')
    anomalous(record(given('processing'), refused), 'contradiction')
  })

  test('another platform order number than the one known: an anomaly', () => {
    anomalous(record(given('paid', { agentpayOrderId: 'AP9' }), accepted), 'order-id-mismatch')
  })
})

describe('a callback or a query result', () => {
  const settled = (payout: Payout, heard: OrderReport, source: 'CALLBACK' | 'QUERY' = 'CALLBACK') =>
    settle(payout, heard, source, TABLE, NOW)

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
    })
  }

  for (const state of ['held', 'queued'] as const) {
    test(`${state} after an attempt is settled by evidence`, () => {
      moved(settled(given(state, { attempt: 1 }), report('success')), 'paid')
      moved(settled(given(state, { attempt: 1 }), report('failed')), 'failed')
      moved(settled(given(state, { attempt: 1 }), report('processing')), 'processing')
    })
    test(`${state} without an attempt cannot be at the gateway: an anomaly`, () => {
      anomalous(settled(given(state), report('success')), 'never-sent')
    })
  }

  for (const state of ['rejected', 'cancelled'] as const) {
    test(`${state}: whatever the gateway says of it is an anomaly`, () => {
      anomalous(settled(given(state, { attempt: 0 }), report('success')), 'never-sent')
    })
  }

  for (const status of ['pending', 'processing'] as const) {
    test(`${status}: submitting and unknown become processing`, () => {
      moved(settled(given('submitting'), report(status)), 'processing')
      moved(settled(given('unknown'), report(status), 'QUERY'), 'processing')
    })
    test(`${status} while processing: asked again, at growing intervals`, () => {
      const first = absorbed(settled(given('processing'), report(status), 'QUERY'))
      assert.deepEqual([first.queries, first.dueAt], [1, NOW + 9_000])
      const many = absorbed(settled(given('processing', { queries: 40 }), report(status), 'QUERY'))
      assert.equal(many.dueAt, NOW + 9_000)
    })
    test(`a late "${status}" is weaker than an end, and absorbed`, () => {
      absorbed(settled(given('paid'), report(status)))
      absorbed(settled(given('failed'), report(status)))
    })
  }

  test('the same end again is absorbed', () => {
    absorbed(settled(given('paid'), report('success')))
    absorbed(settled(given('failed'), report('failed')))
  })

  test('failed after paid, or paid after failed, changes nothing and is an anomaly', () => {
    anomalous(settled(given('paid'), report('failed')), 'contradiction')
    anomalous(settled(given('failed'), report('success')), 'contradiction')
  })

  test('another amount settles nothing', () => {
    anomalous(
      settled(given('processing'), report('success', { amount: paise(5_000_100n) })),
      'amount-mismatch',
    )
    anomalous(settled(given('processing'), report('success', { amount: null })), 'amount-mismatch')
  })

  test('another order number, or another platform order number, settles nothing', () => {
    anomalous(settled(given('processing'), report('success', { mchOrderNo: 'PORDER2' })), 'order-mismatch')
    anomalous(
      settled(given('processing'), report('success', { agentpayOrderId: 'AP9' })),
      'order-id-mismatch',
    )
  })

  test('a status that is not in the contract settles nothing', () => {
    anomalous(settled(given('processing'), report('unlisted')), 'unlisted-status')
  })

  test('"processing" does not take an expired payout out of review again', () => {
    absorbed(settled(given('review', { deadline: NOW - 1 }), report('processing')))
  })
})

describe('a "not found"', () => {
  const absent = (payout: Payout, control = true, table = TABLE) =>
    recordAbsence(payout, exchange, control, table, NOW)

  test('counts one after the other, and the last proves absence: sent again under the same order number', () => {
    const once = absorbed(absent(given('unknown')))
    assert.equal(once.absences, 1)
    const after = moved(absent(once), 'queued')
    assert.deepEqual([after.orderNo, after.ready, after.reason], ['PORDER1', true, 'proved-absent'])
  })

  test('goes to a person where the gateway does not promise to refuse duplicates', () => {
    moved(absent(given('unknown', { absences: 1 }), true, NO_RESEND), 'review')
  })

  test('does not count within the grace period', () => {
    const after = absorbed(absent(given('unknown', { unknownSince: NOW - 4_999, absences: 1 })))
    assert.equal(after.absences, 1)
  })

  test('does not count without a positive control', () => {
    const after = absorbed(absent(given('unknown', { absences: 1 }), false))
    assert.equal(after.absences, 1)
  })

  test('about an order that the gateway gave a number is a case for a person', () => {
    const once = absorbed(absent(given('processing')))
    moved(absent(once), 'review')
  })

  test('that comes after the payout moved on says nothing', () => {
    assert.deepEqual(absent(given('paid')), { nothing: true })
  })
})

test('a query without an answer is asked again later, and proves nothing', () => {
  const after = absorbed(recordNoAnswer(given('unknown', { absences: 1 }), exchange, TABLE, NOW))
  assert.deepEqual([after.queries, after.absences, after.dueAt], [1, 1, NOW + 9_000])
  assert.deepEqual(recordNoAnswer(given('paid'), exchange, TABLE, NOW), { nothing: true })
})

describe('time', () => {
  const due = (payout: Payout) => whenDue(payout, TABLE, NOW)
  const expired = { deadline: NOW }

  test('lets a scheduled payout go', () => {
    assert.equal(moved(due(given('held')) as Decision, 'queued').ready, true)
  })

  test('ends a back-off without a new version', () => {
    assert.equal(absorbed(due(given('queued', { ready: false, attempt: 1 })) as Decision).ready, true)
  })

  test('an ended lease makes the result unknown', () => {
    const after = moved(due(given('submitting')) as Decision, 'unknown')
    assert.deepEqual([after.reason, after.unknownSince], ['lease-ended', NOW])
  })

  test('unknown and processing are asked about', () => {
    assert.deepEqual(due(given('unknown')), { ask: true })
    assert.deepEqual(due(given('processing')), { ask: true })
  })

  test('past its deadline a payout that was never sent is cancelled as expired', () => {
    assert.equal(moved(due(given('queued', expired)) as Decision, 'cancelled').reason, 'expired')
    assert.equal(moved(due(given('held', expired)) as Decision, 'cancelled').reason, 'expired')
  })

  test('past its deadline a payout that was sent goes to a person', () => {
    moved(due(given('queued', { ...expired, attempt: 1 })) as Decision, 'review')
    moved(due(given('unknown', expired)) as Decision, 'review')
    moved(due(given('processing', expired)) as Decision, 'review')
  })

  test('a deadline does not cut a lease short: its owner may still be sending', () => {
    const lease = NOW + 15_000
    const after = become(given('queued', { deadline: NOW + 1_000 }), 'submitting', {
      attempt: 1,
      dueAt: lease,
    })
    assert.equal(after.dueAt, lease)
  })

  test('nothing waits beyond its deadline to be looked at', () => {
    const after = moved(
      recordApply(given('submitting', { deadline: NOW + 1_000 }), 1, accepted, TABLE, NOW),
      'processing',
    )
    assert.equal(after.dueAt, NOW + 1_000)
  })
})

describe('a request to cancel', () => {
  const asked = (payout: Payout) => cancel(payout, 'COMMAND', 'hr: left the company')

  test('cancels what the gateway cannot have', () => {
    moved(asked(given('queued')), 'cancelled')
    moved(asked(given('held')), 'cancelled')
  })

  test('hands a payout that waits after an attempt to a person', () => {
    moved(asked(given('queued', { attempt: 1 })), 'review')
  })

  for (const state of STATES.filter((each) => each !== 'held' && each !== 'queued')) {
    test(`comes too late for ${state}, and is kept in its history`, () => {
      absorbed(asked(given(state)))
    })
  }
})

test('a move that the state table forbids is a bug, and throws', () => {
  assert.throws(() => become(given('paid'), 'queued', {}), /cannot go from paid to queued/)
  assert.throws(() => become(given('queued', { attempt: 1 }), 'cancelled', {}), /cannot go/)
})
