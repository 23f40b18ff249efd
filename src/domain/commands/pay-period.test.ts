import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PayPeriod, payPeriodAt } from './pay-period.ts'

const inIndia = (at: string) => Date.parse(`${at}+05:30`)
const shown = (at: string, period: PayPeriod) => {
  const { from, to } = payPeriodAt(inIndia(at), period)
  return [new Date(from).toISOString(), new Date(to).toISOString()]
}

test('a month begins and ends at midnight in India', () => {
  const november = ['2026-10-31T18:30:00.000Z', '2026-11-30T18:30:00.000Z']
  assert.deepEqual(shown('2026-11-01T00:00:00', 'month'), november)
  assert.deepEqual(shown('2026-11-30T23:59:59.999', 'month'), november)
  assert.equal(shown('2026-12-01T00:00:00', 'month')[0], november[1])
})

test('a week begins on Monday', () => {
  const week = ['2026-11-15T18:30:00.000Z', '2026-11-22T18:30:00.000Z']
  assert.deepEqual(shown('2026-11-16T00:00:00', 'week'), week)
  assert.deepEqual(shown('2026-11-22T23:59:59.999', 'week'), week)
})

test('a day follows the Indian calendar, not the UTC date', () => {
  assert.deepEqual(shown('2026-11-21T02:00:00', 'day'), [
    '2026-11-20T18:30:00.000Z',
    '2026-11-21T18:30:00.000Z',
  ])
})
