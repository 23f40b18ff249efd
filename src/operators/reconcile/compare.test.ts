import assert from 'node:assert/strict'
import { test } from 'node:test'
import { paise } from '../../domain/money.ts'
import { compare, type Here, type There } from './compare.ts'
import { compareStatement, type StatedPayout, type StatementLine } from './compare-statement.ts'

const here = (fields: Partial<Here> = {}): Here => ({
  state: 'paid',
  amount: paise(10_000),
  fee: paise(500),
  utr: 'UTR1',
  agentpayOrderId: 'AP1',
  reversed: false,
  ...fields,
})
const there = (fields: Partial<NonNullable<There>> = {}): There => ({
  status: 'success',
  amount: paise(10_000),
  fee: paise(500),
  utr: 'UTR1',
  agentpayOrderId: 'AP1',
  ...fields,
})
const open = (fields: Partial<Here> = {}) => here({ fee: null, utr: null, state: 'processing', ...fields })

const AGREE: [string, Here, There][] = [
  ['paid on both sides', here(), there()],
  ['failed on both sides', here({ state: 'failed' }), there({ status: 'failed' })],
  ['under way on both sides', open(), there({ status: 'processing' })],
  ['sent, and the answer not here yet', open({ state: 'submitting' }), there({ status: 'pending' })],
  ['a person decides, and the gateway goes on', open({ state: 'review' }), there({ status: 'processing' })],
  ['unknown, and never there', open({ state: 'unknown', agentpayOrderId: null }), null],
  ['refused, so never there', here({ state: 'failed', agentpayOrderId: null }), null],
  ['what the gateway does not tell', here(), there({ fee: null, utr: null, agentpayOrderId: null })],
  ['came back, as a person confirmed', here({ reversed: true }), there({ status: 'failed' })],
]
for (const [what, ours, theirs] of AGREE) {
  test(`agree: ${what}`, () => assert.deepEqual(compare(ours, theirs), []))
}

const DIFFER: [string, Here, There, string][] = [
  ['failed there', here(), there({ status: 'failed' }), 'paid-here-only: paid, failed'],
  ['under way there', here(), there({ status: 'pending' }), 'paid-here-only: paid, pending'],
  [
    'came back, and is under way again',
    here({ reversed: true }),
    there({ status: 'processing' }),
    'paid-here-only: paid, processing',
  ],
  [
    'came back, and is paid there',
    here({ reversed: true }),
    there(),
    'reversed-here-only: reversed, success',
  ],
  ['failed here', here({ state: 'failed' }), there(), 'paid-there-only: failed, success'],
  ['cancelled here', here({ state: 'cancelled' }), there(), 'paid-there-only: cancelled, success'],
  [
    'failed here, open there',
    here({ state: 'failed' }),
    there({ status: 'processing' }),
    'open-there-only: failed, processing',
  ],
  ['open here, paid there', open(), there(), 'not-heard-here: processing, success'],
  [
    'in review here, failed there',
    open({ state: 'review' }),
    there({ status: 'failed' }),
    'not-heard-here: review, failed',
  ],
  [
    'queued again, though the gateway has it',
    open({ state: 'queued' }),
    there({ status: 'processing' }),
    'not-heard-here: queued, processing',
  ],
  ['paid, and gone there', here(), null, 'missing-there: paid, none'],
  ['named before, and gone there', open({ state: 'unknown' }), null, 'missing-there: unknown, none'],
  ['an odd status', open(), there({ status: 'unlisted' }), 'unlisted-status: processing, unlisted'],
  ['amount', here(), there({ amount: paise(10_100) }), 'amount: 10000, 10100'],
  ['an amount that cannot be read', here(), there({ amount: null }), 'amount: 10000, none'],
  ['fee', here(), there({ fee: paise(501) }), 'fee: 500, 501'],
  ['a fee unknown here', here({ fee: null }), there(), 'fee: none, 500'],
  ['UTR', here(), there({ utr: 'UTR2' }), 'utr: UTR1, UTR2'],
  ['order id', here(), there({ agentpayOrderId: 'AP2' }), 'order-id: AP1, AP2'],
]
for (const [what, ours, theirs, found] of DIFFER) {
  test(`differ: ${what}`, () => {
    assert.deepEqual(
      compare(ours, theirs).map((each) => `${each.kind}: ${each.here}, ${each.there}`),
      [found],
    )
  })
}

test('one comparison reports all differences', () => {
  const kinds = compare(here(), there({ amount: paise(1), fee: paise(1), utr: 'X', agentpayOrderId: 'Y' }))
  assert.deepEqual(
    kinds.map(({ kind }) => kind),
    ['amount', 'fee', 'utr', 'order-id'],
  )
})

const DAY = 86_400_000
const NOVEMBER = { from: Date.UTC(2026, 10, 1), to: Date.UTC(2026, 11, 1) }
const paid = (n: number, fields: Partial<StatedPayout> = {}): StatedPayout => ({
  payoutId: `p${n}`,
  orderNo: `O${n}`,
  state: 'paid',
  amount: paise(100 * n),
  utr: `UTR${n}`,
  paidAt: NOVEMBER.from,
  ...fields,
})
const line = (n: number, fields: Partial<StatementLine> = {}): StatementLine => ({
  row: n + 1,
  utr: `UTR${n}`,
  amount: paise(100 * n),
  mchOrderNo: null,
  ...fields,
})

function compareAll(
  lines: readonly StatementLine[],
  paid: readonly StatedPayout[],
  named: readonly StatedPayout[],
) {
  const { differences, missing } = compareStatement(lines, named, NOVEMBER)
  return [...differences, ...missing(paid.map((payout) => ({ ...payout, otherStatement: null })))]
}

test('a statement that agrees with payoutd has no difference', () => {
  const payouts = [paid(1), paid(2), paid(3)]
  assert.deepEqual(
    compareAll([line(3), line(1), line(2, { utr: null, mchOrderNo: 'O2' })], payouts, payouts),
    [],
  )
})

test('a line of a payout that became paid more than a day outside the period may be a second payment, and is reported', () => {
  const { from, to } = NOVEMBER
  const paidAt = [from - 40 * DAY, from - DAY - 1, from - DAY, to + DAY, to + DAY + 1]
  const payouts = paidAt.map((at, n) => paid(n, { paidAt: at }))
  const lines = payouts.map(({ orderNo }, n) => line(n, n === 0 ? { utr: null, mchOrderNo: orderNo } : {}))
  assert.deepEqual(
    compareAll(lines, [], payouts).map(({ kind, payoutId, here }) => [kind, payoutId, here]),
    [0, 1, 4].map((n) => ['paid-in-other-period', `p${n}`, String(paidAt[n])]),
  )
})

test('a UTR that two payouts have is reported as theirs, and neither is called missing from the statement', () => {
  const payouts = [paid(1, { utr: 'U' }), paid(2, { utr: 'U' }), paid(3)]
  const found = compareAll([line(2, { utr: 'U', mchOrderNo: 'O2' }), line(3)], payouts, payouts)
  assert.deepEqual(
    found.map((each) => `${each.kind} row ${each.row} ${each.payoutId}: ${each.here}, ${each.there}`),
    ['utr-of-two-payouts row 3 p2: p1 too, 200'],
  )
})

test('each way in which a statement can differ is reported under its own kind', () => {
  const payouts = [paid(1), paid(2), paid(3), paid(4), paid(5)]
  const failed = paid(6, { state: 'failed', utr: null, paidAt: null })
  const found = compareAll(
    [
      line(1),
      line(1, { row: 9 }),
      line(2, { amount: paise(250) }),
      line(3, { utr: 'UTR33', mchOrderNo: 'O3' }),
      line(6, { mchOrderNo: 'O6', utr: null }),
      line(8),
    ],
    payouts,
    [...payouts, failed],
  )
  assert.deepEqual(
    found.map((each) => `${each.kind} row ${each.row} ${each.payoutId}: ${each.here}, ${each.there}`),
    [
      'utr-twice row 9 null: none, row 2 too',
      'only-in-statement row 9 null: none, 800',
      'not-paid-here row 7 p6: failed, paid',
      'statement-amount row 3 p2: 200, 250',
      'statement-utr row 4 p3: UTR3, UTR33',
      'not-in-statement row null p4: 400, none',
      'not-in-statement row null p5: 500, none',
    ],
  )
})

test('a UTR in other letter case is the same UTR in every lookup', () => {
  const lines = [line(1, { utr: 'utr1' }), line(1, { row: 9 }), line(2, { utr: 'utr2', mchOrderNo: 'O2' })]
  assert.deepEqual(
    compareAll(lines, [paid(1), paid(2)], [paid(1), paid(2)]).map(({ kind, row }) => `${kind} row ${row}`),
    ['utr-twice row 9'],
  )
  const both = [paid(1, { utr: 'u' }), paid(2, { utr: 'U' })]
  const [of, ...others] = compareAll([line(1, { utr: 'U' })], both, both)
  assert.deepEqual([of?.kind, others], ['utr-of-two-payouts', []])
  assert.deepEqual(compare(here({ utr: 'utr1' }), there({ utr: 'UTR1' })), [])
})

test('a second payment of one payout is reported, whatever its lines leave out', () => {
  const byOrder = (row: number) => line(1, { row, utr: null, mchOrderNo: 'O1' })
  const other = line(1, { row: 9, utr: 'UTR11', mchOrderNo: 'O1' })
  for (const [lines, found] of [
    [[line(1), byOrder(9)], ['payout-twice row 9']],
    [[byOrder(2), line(1, { row: 9 })], ['payout-twice row 9']],
    [
      [byOrder(2), byOrder(9), byOrder(10)],
      ['payout-twice row 9', 'payout-twice row 10'],
    ],
    [
      [line(1), other],
      ['payout-twice row 9', 'statement-utr row 9'],
    ],
    [
      [line(1), other, line(1, { row: 10, utr: 'UTR11', mchOrderNo: 'O1' })],
      ['utr-twice row 10', 'payout-twice row 9', 'statement-utr row 9', 'statement-utr row 10'],
    ],
  ] as const) {
    const differences = compareAll(lines, [paid(1)], [paid(1)])
    assert.deepEqual(
      differences.map(({ kind, row }) => `${kind} row ${row}`),
      found,
    )
  }
})

test('a line with the UTR of one payout and the order number of another, or of none, is reported with both', () => {
  const failed = paid(2, { state: 'failed', utr: null, paidAt: null })
  const wrong = (mchOrderNo: string) =>
    compareAll([line(1, { mchOrderNo })], [paid(1)], [paid(1), failed]).map(
      ({ kind, payoutId, here, there }) => `${kind} ${payoutId}: ${here}, ${there}`,
    )
  assert.deepEqual(wrong('O2'), ['statement-order p1: O1, O2'])
  assert.deepEqual(wrong('O9'), ['statement-order p1: O1, O9'])
  assert.deepEqual(wrong('O1'), [])
})
