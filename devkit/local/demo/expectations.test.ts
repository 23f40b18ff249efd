import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RefusedRow } from '../../../src/batches/file/check-file.ts'
import { paise } from '../../../src/domain/money.ts'
import type { ExpectedOutcome } from '../../oracle/outcome.ts'
import { checkExpectations, type Expectation } from './expectations.ts'

const refused = (row: number, column: string, rule: string): RefusedRow => ({
  kind: 'refused',
  row,
  reference: null,
  payoutId: null,
  amount: null,
  faults: [{ column, rule, message: '', found: '' }],
})

const ended = (row: number, status: string): ExpectedOutcome => ({
  asked: { merchantId: 'acme', payoutId: `p${row}`, amount: paise(100n), payee: 'x', row },
  ends: [
    {
      eventId: `e${row}`,
      merchantId: 'acme',
      payoutId: `p${row}`,
      status,
      amount: paise(100n),
      fee: null,
      utr: null,
      version: 3,
      evidence: 'CALLBACK',
      errors: [],
    },
  ],
  events: [],
  kept: null,
  state: status,
  orders: [],
})

const expected = (row: number, outcome: Expectation['outcome'], column = '', rule = ''): Expectation => ({
  row,
  outcome,
  column,
  rule,
  why: 'planted',
})

const EXPECTED = [
  expected(2, 'rejected', 'ifsc', 'ifsc'),
  expected(3, 'duplicate'),
  expected(4, 'failed'),
  expected(5, 'paid'),
]
const REFUSED = [refused(2, 'ifsc', 'ifsc')]
const PAYOUTS = [ended(4, 'FAILED'), ended(5, 'PAID'), ended(6, 'PAID')]
const rowsAtFault = (rejected: RefusedRow[], payouts: ExpectedOutcome[]) =>
  checkExpectations(EXPECTED, rejected, payouts).map(({ who }) => who)

test('rows with the expected result are not reported', () => {
  assert.deepEqual(rowsAtFault(REFUSED, PAYOUTS), [])
})

test('a wrong row that was accepted is reported, and one rejected for another reason', () => {
  assert.deepEqual(rowsAtFault([], [...PAYOUTS, ended(2, 'PAID')]), ['row 2'])
  assert.deepEqual(rowsAtFault([refused(2, 'amount', 'required')], PAYOUTS), ['row 2'])
})

test('a duplicate that was accepted or rejected is reported', () => {
  assert.deepEqual(rowsAtFault(REFUSED, [...PAYOUTS, ended(3, 'PAID')]), ['row 3'])
  assert.deepEqual(rowsAtFault([...REFUSED, refused(3, 'amount', 'required')], PAYOUTS), ['row 3'])
})

test('a row that must fail but is paid is reported, and one that must be paid but fails', () => {
  assert.deepEqual(rowsAtFault(REFUSED, PAYOUTS.with(0, ended(4, 'PAID'))), ['row 4'])
  assert.deepEqual(rowsAtFault(REFUSED, PAYOUTS.with(1, ended(5, 'FAILED'))), ['row 5'])
})

test('an ordinary row that is not paid or was rejected is reported', () => {
  assert.deepEqual(rowsAtFault(REFUSED, PAYOUTS.with(2, ended(6, 'FAILED'))), ['row 6'])
  assert.deepEqual(rowsAtFault([...REFUSED, refused(7, 'amount', 'required')], PAYOUTS), ['row 7'])
})
