import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { paise } from '../../src/domain/money.ts'
import { type CheckKind, check, needlessReviews } from './check.ts'
import type { GatewayBooks, GatewayOrder } from './gateway-books.ts'
import type { LedgerEvidence, LedgerRecord } from './ledger-records.ts'
import { outcomesOf, type RequestedPayout } from './outcome.ts'
import type { PublishedEvent, PublishedResult } from './published-messages.ts'

const FEE = paise(500n)

const asked = (row: number): RequestedPayout => ({
  merchantId: 'acme',
  payoutId: `p${row}`,
  amount: paise(row * 100),
  payee: `payee${row}`,
  row,
})

const event = (row: number, version: number, toState: string): PublishedEvent => ({
  eventId: `p${row}-${version}`,
  merchantId: 'acme',
  payoutId: `p${row}`,
  version,
  toState,
  mchOrderNo: `O${row}`,
  reason: null,
  evidence: 'CALLBACK',
})

const end = (row: number, status: string, fields: Partial<PublishedResult> = {}): PublishedResult => ({
  eventId: `p${row}-3`,
  merchantId: 'acme',
  payoutId: `p${row}`,
  status,
  amount: paise(row * 100),
  fee: status === 'PAID' ? FEE : null,
  utr: status === 'PAID' ? `utr${row}` : null,
  version: 3,
  evidence: 'CALLBACK',
  errors: [],
  ...fields,
})

const order = (row: number, fields: Partial<GatewayOrder> = {}): GatewayOrder => ({
  mchOrderNo: `O${row}`,
  agentpayOrderId: `AP${row}`,
  amount: paise(row * 100),
  fee: FEE,
  status: 2,
  timesPaid: 1,
  applyCalls: 1,
  utr: `utr${row}`,
  payee: `payee${row}`,
  callbacksSent: 1,
  ...fields,
})

const proof = (row: number, state: string, fields: Partial<LedgerEvidence> = {}): LedgerEvidence => ({
  version: 3,
  toState: state,
  source: 'CALLBACK',
  times: 1,
  said: { status: state === 'paid' ? '2' : '3', amount: String(row * 100), mchOrderNo: `O${row}` },
  ...fields,
})

const kept = (row: number, state: string, fields: Partial<LedgerRecord> = {}): LedgerRecord => ({
  merchantId: 'acme',
  payoutId: `p${row}`,
  orderNo: `O${row}`,
  amount: paise(row * 100),
  state,
  version: 3,
  attempts: [`O${row}`],
  history: [
    { version: 1, toState: 'queued', source: 'COMMAND', times: 1, said: null },
    { version: 2, toState: 'submitting', source: 'COMMAND', times: 1, said: null },
    proof(row, state),
  ],
  ...fields,
})
const withEnd = (row: number, state: string, end: Partial<LedgerEvidence>): LedgerRecord => {
  const whole = kept(row, state)
  return { ...whole, history: whole.history.with(2, proof(row, state, end)) }
}

/** Three payouts of ₹1, ₹2 and ₹3: two paid, the third failed. Everything fits. */
const good = {
  asked: [asked(1), asked(2), asked(3)],
  results: [end(1, 'PAID'), end(2, 'PAID'), end(3, 'FAILED')],
  events: [1, 2, 3].flatMap((row) => [
    event(row, 1, 'QUEUED'),
    event(row, 2, 'SUBMITTING'),
    event(row, 3, row === 3 ? 'FAILED' : 'PAID'),
  ]),
  kept: [kept(1, 'paid'), kept(2, 'paid'), kept(3, 'failed')],
  orders: [order(1), order(2), order(3, { status: 3, timesPaid: 0, utr: null })],
  books: {
    accounts: { paidOut: paise(300n), fees: paise(1000n) },
    balancesAgree: true,
    orders: { callbacksOutstanding: 0 },
    everything: { sum: paise(0) },
  } as GatewayBooks,
}

function kindsOf(changed: Partial<typeof good>): CheckKind[] {
  const { asked, results, events, kept, orders, books } = { ...good, ...changed }
  const told = { results, events, anomalies: [] }
  return check(outcomesOf(asked, told, kept, orders), books).map(({ kind }) => kind)
}

const replace = <T>(list: readonly T[], index: number, item: T): T[] => list.with(index, item)
const withBooks = (accounts: Partial<GatewayBooks['accounts']>): GatewayBooks => ({
  ...good.books,
  accounts: { ...good.books.accounts, ...accounts },
})

describe('the oracle finds', () => {
  test('nothing where everything fits', () => {
    assert.deepEqual(kindsOf({}), [])
  })

  test('a payout that the gateway paid twice under one order', () => {
    const orders = replace(good.orders, 0, order(1, { timesPaid: 2 }))
    assert.deepEqual(kindsOf({ orders }), ['paid-twice'])
  })

  test('a payout that the gateway paid under two orders', () => {
    const events = [
      ...good.events.slice(0, 2),
      { ...event(1, 3, 'PAID'), mchOrderNo: 'O1b' },
      ...good.events.slice(3),
    ]
    const orders = [...good.orders, order(1, { mchOrderNo: 'O1b' })]
    const books = withBooks({ paidOut: paise(400n), fees: paise(1500n) })
    assert.deepEqual(kindsOf({ events, orders, books }), ['sent-unintended', 'paid-twice', 'sum', 'sum'])
  })

  test('a payout whose money went to another account', () => {
    const orders = replace(good.orders, 0, order(1, { payee: 'payee2' }))
    assert.deepEqual(kindsOf({ orders }), ['wrong-payee'])
  })

  test('the same payoutId of another merchant, which is another payout', () => {
    const other = (state: string) => ({ ...kept(1, state), merchantId: 'globex' })
    assert.deepEqual(kindsOf({ kept: [...good.kept, other('paid')] }), ['not-requested'])
    assert.deepEqual(kindsOf({ results: [{ ...end(1, 'PAID'), merchantId: 'globex' }, ...good.results] }), [
      'not-requested',
    ])
  })

  test('a payout that waits for a person although the gateway has its order', () => {
    const found = (orders: GatewayOrder[]) =>
      needlessReviews(
        outcomesOf(
          [asked(1)],
          { results: [], events: [event(1, 3, 'REVIEW')], anomalies: [] },
          [kept(1, 'review')],
          orders,
        ),
      ).map(({ kind }) => kind)
    assert.deepEqual(found([order(1)]), ['needless-review'])
    assert.deepEqual(found([]), [])
  })

  test('a payout that ended here without a published result', () => {
    assert.ok(kindsOf({ results: good.results.slice(1) }).includes('no-end'))
  })

  test('a payout without any record', () => {
    assert.deepEqual(kindsOf({ asked: [...good.asked, asked(4)] }), ['no-end', 'not-in-ledger'])
  })

  test('two different ends of one payout', () => {
    const results = [...good.results, end(1, 'FAILED', { eventId: 'another' })]
    assert.deepEqual(kindsOf({ results }), ['two-ends'])
  })

  test('the same end under two event ids', () => {
    const results = [...good.results, end(1, 'PAID', { eventId: 'another' })]
    assert.deepEqual(kindsOf({ results }), ['two-ends'])
  })

  test('an end that is not the state of the payout', () => {
    const events = good.events.with(2, event(1, 3, 'FAILED'))
    assert.deepEqual(kindsOf({ events }), ['end-and-state'])
  })

  test('a version that is missing, and one that came under two event ids', () => {
    const gap = good.events.filter(({ eventId }) => eventId !== 'p1-2')
    assert.deepEqual(kindsOf({ events: gap }), ['versions'])
    const twice = [...good.events, { ...event(1, 2, 'SUBMITTING'), eventId: 'another' }]
    assert.deepEqual(kindsOf({ events: twice }), ['versions'])
  })

  test('a version that came before the one it follows', () => {
    const [first, second, ...others] = good.events as [PublishedEvent, PublishedEvent, ...PublishedEvent[]]
    assert.deepEqual(kindsOf({ events: [second, first, ...others] }), ['versions'])
  })

  test('a payout that is PAID here and was not paid there', () => {
    const orders = replace(good.orders, 0, order(1, { status: 3, timesPaid: 0 }))
    assert.deepEqual(kindsOf({ orders, books: withBooks({ paidOut: paise(200n), fees: FEE }) }), [
      'paid-here-only',
      'sum',
      'sum',
    ])
    assert.ok(kindsOf({ orders: good.orders.slice(1) }).includes('paid-here-only'))
  })

  test('a payout that is FAILED here and was paid there', () => {
    const orders = replace(good.orders, 2, order(3))
    const books = withBooks({ paidOut: paise(600n), fees: paise(1500n) })
    assert.deepEqual(kindsOf({ orders, books }), ['paid-there-only', 'sum', 'sum'])
  })

  test('a payout that is FAILED here and still processing there', () => {
    const orders = replace(good.orders, 2, order(3, { status: 1, timesPaid: 0 }))
    assert.deepEqual(kindsOf({ orders }), ['not-ended-there'])
  })

  test('another amount in a result, or in an order', () => {
    const results = replace(good.results, 0, end(1, 'PAID', { amount: paise(10_000n) }))
    assert.deepEqual(kindsOf({ results }), ['amount', 'sum'])
    const orders = replace(good.orders, 0, order(1, { amount: paise(10_000n) }))
    assert.deepEqual(kindsOf({ orders }), ['amount'])
  })

  test('another fee, and none', () => {
    const results = replace(good.results, 0, end(1, 'PAID', { fee: paise(600n) }))
    assert.deepEqual(kindsOf({ results }), ['fee', 'sum'])
    assert.deepEqual(kindsOf({ results: replace(good.results, 0, end(1, 'PAID', { fee: null })) }), [
      'fee',
      'sum',
    ])
  })

  test('a fee of a payout that was not paid', () => {
    assert.deepEqual(kindsOf({ results: replace(good.results, 2, end(3, 'FAILED', { fee: FEE })) }), ['fee'])
  })

  test('another bank reference than the gateway’s', () => {
    assert.deepEqual(kindsOf({ results: replace(good.results, 0, end(1, 'PAID', { utr: 'utr9' })) }), ['utr'])
  })

  test('an order that was paid and belongs to no payout of ours', () => {
    const books = withBooks({ paidOut: paise(900n), fees: paise(1500n) })
    assert.deepEqual(kindsOf({ orders: [...good.orders, order(6)], books }), ['unknown-order', 'sum', 'sum'])
  })

  test('an end of a payout that nobody requested', () => {
    assert.deepEqual(kindsOf({ results: [...good.results, end(9, 'PAID')] }), ['not-requested'])
  })

  test('a payout missing from payoutd’s ledger, and one that nobody requested', () => {
    assert.deepEqual(kindsOf({ kept: good.kept.slice(1) }), ['not-in-ledger'])
    assert.deepEqual(kindsOf({ kept: [...good.kept, kept(9, 'queued')] }), ['not-requested'])
  })

  const keptFirst = (first: LedgerRecord) => kindsOf({ kept: good.kept.with(0, first) })

  test('another amount in the ledger', () => {
    const [kind] = keptFirst(kept(1, 'paid', { amount: paise(10_000n) }))
    assert.equal(kind, 'amount')
  })

  test('a version missing from the history, and a state that the history does not end in', () => {
    const whole = kept(1, 'paid')
    assert.deepEqual(keptFirst({ ...whole, history: whole.history.toSpliced(1, 1) }), ['history'])
    assert.deepEqual(keptFirst({ ...whole, state: 'processing' }), ['history'])
  })

  test('an order sent to the gateway more often than committed', () => {
    assert.deepEqual(keptFirst(kept(1, 'paid', { attempts: [] })), ['sent-unintended'])
    const orders = good.orders.with(0, order(1, { applyCalls: 2 }))
    assert.deepEqual(kindsOf({ orders }), ['sent-unintended'])
  })

  test('an attempt under an order number of its own', () => {
    assert.deepEqual(keptFirst(kept(1, 'paid', { attempts: ['O1', 'O1b'] })), ['other-order'])
  })

  test('a payout that was sent though the balance did not cover it', () => {
    const whole = kept(1, 'paid')
    const short = {
      version: null,
      toState: 'submitting',
      source: 'APPLY',
      times: 1,
      said: { retCode: 'BALANCE_SHORT' },
    }
    assert.deepEqual(keptFirst({ ...whole, history: whole.history.toSpliced(2, 0, short) }), ['overdrawn'])
  })

  test('an end read back by a restored ledger that a later report contradicts', () => {
    const { history, ...readBack } = withEnd(1, 'paid', { said: null })
    const again = (status: string) =>
      proof(1, 'paid', { version: null, source: 'QUERY', said: { status, amount: '100', mchOrderNo: 'O1' } })
    assert.deepEqual(keptFirst({ ...readBack, history: [...history, again('2')] }), [])
    assert.deepEqual(keptFirst({ ...readBack, history: [...history, again('3')] }), ['without-evidence'])
  })

  test('an end without evidence, or with evidence that differs', () => {
    assert.deepEqual(keptFirst(withEnd(1, 'paid', { source: 'CLOCK', said: null })), ['without-evidence'])
    assert.deepEqual(keptFirst(withEnd(1, 'paid', { source: 'APPLY' })), ['without-evidence'])
    const said = { status: '1', amount: '100', mchOrderNo: 'O1' }
    assert.deepEqual(keptFirst(withEnd(1, 'paid', { said })), ['without-evidence'])
  })

  test('an end by a report about another amount, or another order', () => {
    const said = { status: '2', amount: '100', mchOrderNo: 'O1' }
    for (const other of [{ amount: '200' }, { mchOrderNo: 'O2' }]) {
      assert.deepEqual(keptFirst(withEnd(1, 'paid', { said: { ...said, ...other } })), ['evidence-differs'])
    }
  })

  test('gateway books that do not add up', () => {
    assert.deepEqual(kindsOf({ books: { ...good.books, everything: { sum: paise(1n) } } }), ['sum'])
    assert.deepEqual(kindsOf({ books: { ...good.books, balancesAgree: false } }), ['sum'])
  })
})

describe('the oracle accepts', () => {
  test('the same end and the same event again', () => {
    const repeated = {
      results: [...good.results, end(1, 'PAID')],
      events: [...good.events, event(1, 2, 'SUBMITTING')],
    }
    assert.deepEqual(kindsOf(repeated), [])
  })

  test('no fee if a person reported the payment', () => {
    const results = good.results.with(0, end(1, 'PAID', { fee: null, evidence: 'OPERATOR' }))
    assert.deepEqual(kindsOf({ results }), [])
  })

  test('an end that a person decided, and a payout that failed because apply was refused', () => {
    const decided = withEnd(1, 'paid', { source: 'OPERATOR', said: null })
    assert.deepEqual(kindsOf({ kept: good.kept.with(0, decided) }), [])
    const refused = withEnd(3, 'failed', { source: 'APPLY', said: { retCode: 'IFSC_INVALID' } })
    assert.deepEqual(kindsOf({ kept: good.kept.with(2, refused) }), [])
  })

  test('a payout in review, whether the gateway paid it or not', () => {
    const results = good.results.slice(1)
    const events = good.events.with(2, event(1, 3, 'REVIEW'))
    assert.deepEqual(kindsOf({ results, events }), [])
    const orders = replace(good.orders, 0, order(1, { status: 3, timesPaid: 0 }))
    assert.deepEqual(
      kindsOf({ results, events, orders, books: withBooks({ paidOut: paise(200n), fees: FEE }) }),
      [],
    )
  })
})
