import assert from 'node:assert/strict'
import { test } from 'node:test'
import { paise, ZERO } from '../domain/money.ts'
import { type BalanceChange, explain } from '../operators/reconcile/balance-change.ts'
import type { Report } from '../operators/reconcile/report.ts'
import { reportText } from './report-text.ts'

const DAY = Date.UTC(2026, 10, 1)
const report = (fields: Partial<Report>): Report => ({
  run: {
    reconciliationId: 'R',
    merchantId: 'acme',
    periodFrom: DAY,
    periodTo: DAY,
    startedAt: DAY,
    finishedAt: null,
    balance: null,
    accountId: null,
  },
  listed: 0,
  asked: 0,
  firstTold: null,
  lastTold: null,
  totals: {
    ...{ paidHere: 0, amountHere: ZERO, feesHere: ZERO, paidThere: 0, amountThere: ZERO, feesThere: ZERO },
    ...{ reversed: 0, amountReversed: ZERO, open: 0, settled: 0 },
  },
  differing: [],
  balance: { kind: 'untold' },
  statement: null,
  ...fields,
})
const textOf = (fields: Partial<Report>) => reportText(report(fields), DAY)
const balanceText = (balance: BalanceChange) => textOf({ balance }).split('\n').at(-1) ?? ''
const at = (balance: number, inFlight = 0) => ({
  at: DAY,
  balanceAt: DAY,
  balance: paise(balance),
  inFlight: paise(inFlight),
})

test('the figures of a balance add up to the sentence about them', () => {
  assert.match(
    balanceText(explain(at(99_997_574_00), at(99_983_511_00, 10_000_00), paise(4_445_00))),
    /; ₹14,063\.00 left; payouts that ended took ₹4,445\.00; up to ₹9,618\.00 more may be in flight, in review or just failed \(₹10,000\.00 were\)$/,
  )
  assert.match(
    balanceText(explain(at(900, 300), at(800), paise(300))),
    /; ₹1\.00 left; payouts that ended took ₹3\.00; up to ₹2\.00 of it may have left before \(₹3\.00 were in flight, in review or just failed\)$/,
  )
  assert.match(
    balanceText(explain(at(900), at(800), paise(100))),
    /; ₹1\.00 left; payouts that ended took ₹1\.00, which explains it$/,
  )
  assert.match(
    balanceText(explain(at(900), at(200, 200), paise(100))),
    /; ₹7\.00 left; .* took ₹1\.00; ₹2\.00 were in flight, in review or just failed; ANOTHER ₹4\.00 LEFT/,
  )
  assert.match(
    balanceText(explain(at(900, 100), at(1_400), paise(300))),
    /; it grew by ₹5\.00; .* took ₹3\.00; ₹1\.00 were in flight, in review or just failed before; another ₹7\.00 came in/,
  )
  const returned = { reversals: 1, amount: paise(200), early: ZERO, late: ZERO }
  assert.match(
    balanceText(explain(at(900), at(800), paise(300), returned)),
    /; ₹1\.00 left; .* took ₹3\.00; ₹2\.00 came back in 1 reversal, which explains it$/,
  )
  assert.match(
    balanceText(explain(at(900), at(500, 100), paise(300), { ...returned, reversals: 2, early: paise(100) })),
    /; ₹2\.00 came back in 2 reversals; ₹2\.00 were in flight, in review, just failed or back before the first balance; ANOTHER ₹1\.00 LEFT/,
  )
  assert.match(
    balanceText(explain(at(100), at(90), paise(10), { ...returned, amount: paise(10), late: paise(10) })),
    /; ₹0\.10 came back in 1 reversal; up to ₹0\.10 more may be in flight, in review, just failed or back only after the second balance \(₹0\.10 were\)$/,
  )
  assert.match(
    balanceText(explain(at(900), at(500), paise(200), { ...returned, early: paise(50), late: paise(150) })),
    /; ₹2\.00 were in flight, in review, just failed, back before the first balance or back only after the second balance; ANOTHER ₹2\.00 LEFT/,
  )
})

test('if the gateway answered nothing, the report calls nothing agreed or paid', () => {
  const text = textOf({ listed: 1_523 })
  assert.match(text, /: 1,523 were sent, the gateway has answered about 0\n/)
  assert.match(text, /the gateway did not return it when this run began/)
  assert.doesNotMatch(text, /agree|here|explain|₹/)
})

test('a difference stays on the report while the run asks about it again', () => {
  const differences = [{ kind: 'utr', here: 'U1', there: 'U2' } as const]
  const differing = [{ payoutId: 'p1', orderNo: 'O1', amount: paise(100), acceptedAt: DAY, differences }]
  assert.match(textOf({ listed: 1, differing: [...differing] }), /\nutr: 1, ₹1\.00\n/)
})

test('if the gateway answered about some payouts, the table says about how many', () => {
  const text = textOf({ listed: 1_523, asked: 245 })
  assert.match(text, /: 1,523 were sent, the gateway has answered about 245\n/)
  assert.match(text, /PAID, OF 245 ANSWERED +PAYOUTS/)
  assert.match(text, /all 245 answered agree\n/)
})

test('the report shows the times of the first and last answer, because a resumed run asks about none of those again', () => {
  const text = textOf({ listed: 2, asked: 2, firstTold: DAY, lastTold: DAY + 86_400_000 })
  assert.match(text, /: 2 were sent\nthe gateway’s answers are from 2026-11-01 [^\n]* to 2026-11-02 [^\n]*\n/)
})

test('open, returned and settled payouts are reported beside those that agree', () => {
  const { totals } = report({})
  const text = textOf({
    listed: 9,
    asked: 9,
    totals: { ...totals, reversed: 2, amountReversed: paise(300_00), open: 7, settled: 3 },
  })
  assert.match(text, /\n {2}2 of those paid here came back: ₹300\.00\n/)
  assert.match(text, /\nall 9 agree\n7 have not ended on either side\n3 that differed now agree\n/)
})

test('a payout may be in a neighbouring statement, or in that of another account, and the report says so', () => {
  const missing = { kind: 'not-in-statement', row: null, utr: 'U1', here: '100', there: 'none' } as const
  const differences = [
    { ...missing, payoutId: 'p1', otherStatement: 'neighbouring' },
    { ...missing, payoutId: 'p2', otherStatement: null },
    { ...missing, payoutId: 'p3', otherStatement: 'other-account' },
  ] as const
  const text = textOf({ statement: { lines: 0, amount: ZERO, differences: [...differences] } })
  assert.match(
    text,
    / p1 +₹1\.00 +none, but it may be in a neighbouring statement\n.* p2 +₹1\.00 +none\n.* p3 +₹1\.00 +none, it was paid at another account, whose statement should have it$/,
  )
})

test('a line of a payout that was paid in another period says when, and to look whether it was paid twice', () => {
  const kind = 'paid-in-other-period'
  const differences = [{ kind, row: 2, utr: 'U1', payoutId: 'p1', here: String(DAY), there: '100' } as const]
  assert.match(
    textOf({ statement: { lines: 1, amount: paise(100), differences } }),
    / p1 +paid at 2026-11-01 00:00:00.000Z, in another period: look whether it was paid twice +₹1\.00$/,
  )
})

test('a statement of another year is reported line by line, however long it is', () => {
  const line = { kind: 'only-in-statement', utr: 'U1', payoutId: null, here: 'none', there: '100' } as const
  const differences = Array.from({ length: 200_000 }, (_, row) => ({ ...line, row }))
  const text = textOf({ statement: { lines: 200_000, amount: paise(20_000_000n), differences } })
  assert.equal(text.split('\n').filter((each) => each.includes('only-in-statement')).length, 200_000)
})
