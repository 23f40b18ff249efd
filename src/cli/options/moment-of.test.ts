import assert from 'node:assert/strict'
import { test } from 'node:test'
import { momentOf, momentOrDateOf } from './moment-of.ts'

test('a day that does not exist is refused, as a date and in a moment', () => {
  for (const text of ['2026-02-30', '2027-02-29', '2026-13-01', '2026-04-31T10:00Z']) {
    assert.throws(() => momentOrDateOf(text), /There is no such day/, text)
  }
  assert.throws(() => momentOf('2026-02-30T10:00+05:30'), /There is no such day/)
  assert.equal(momentOf('2026-03-01T00:00+05:30'), Date.UTC(2026, 1, 28, 18, 30))
})

test('a date is its midnight in India', () => {
  assert.equal(momentOrDateOf('2028-02-29'), Date.UTC(2028, 1, 28, 18, 30))
})
