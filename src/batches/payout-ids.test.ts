import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { PayoutIds } from './payout-ids.ts'

test('a set of payoutIds has those that were added, and no other', () => {
  const few = fc.array(fc.integer({ min: 0, max: 40 }))
  fc.assert(
    fc.property(few, few, (first, second) => {
      const ids = new PayoutIds()
      const added = new Set<number>()
      for (const some of [first, second]) {
        for (const each of some) ids.add(`p${each}`)
        for (const each of some) added.add(each)
        for (let i = 0; i <= 40; i++) assert.equal(ids.has(`p${i}`), added.has(i))
      }
    }),
  )
})

test('it holds as many as a file has rows', () => {
  const ids = new PayoutIds()
  for (let i = 0; i < 5_000; i++) ids.add(`p${i}`)
  assert.deepEqual(
    [0, 4_999, 5_000].map((i) => ids.has(`p${i}`)),
    [true, true, false],
  )
})
