import assert from 'node:assert/strict'
import { test } from 'node:test'
import { proof } from './proof.ts'

const counted = {
  runs: 1,
  faults: 2,
  payouts: 30,
  paidTwice: 0,
  lost: 0,
  lied: 0,
  other: 0,
  discrepancies: [],
  note: '',
}
const row = (name: string, more: object = {}) => ({ section: 'old', name, ...counted, ...more })
const written = (...rows: ReturnType<typeof row>[]) =>
  proof([{ section: 'old', ranAt: '2026-11-22T15:12:49.561Z', seconds: 1, node: 'v24', rows }])

test('figures that an old run did not count are shown as not counted, and so is a sum with them', () => {
  const page = written(row('killed'), row('frozen', { paysTwice: false, inReview: 3 }))
  assert.doesNotMatch(page, /undefined|NaN/)
  assert.match(page, /\| killed \| 1 \| 2 \| 30 \| 0 \| 0 \| 0 \| 0 \| – \|/)
  assert.match(
    page,
    /at a gateway that refuses duplicates\*\* \| \*\*2\*\* \| \*\*4\*\* \| \*\*60\*\* .* \*\*–\*\* \|/,
  )
})

test('an old run at a gateway that pays twice counts among those', () => {
  const page = written(
    row('restored, at a gateway that pays twice'),
    row('lost', { paysTwice: true, inReview: 3 }),
  )
  assert.match(page, /^60 payouts at a gateway that pays one number as often as it is asked to: /m)
  assert.doesNotMatch(page, /undefined|NaN|refuses duplicates/)
})
