import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkClock, skewMs } from './clocks.ts'

test('a clock that is right is never blamed for the way there or for its whole seconds', () => {
  for (const before of [500_000, 500_400, 500_999]) {
    for (const after of [before, before + 700]) {
      for (const read of [before, after]) {
        const shown = Math.floor(read / 1_000) * 1_000
        assert.equal(skewMs({ before, after, shown, resolutionMs: 1_000 }), 0)
      }
    }
  }
})

test('a clock that is off is told from the nearest moment that it could have been read', () => {
  assert.equal(skewMs({ before: 10_000, after: 10_050, shown: 15_000, resolutionMs: 1 }), 4_950)
  assert.equal(skewMs({ before: 10_000, after: 10_050, shown: 5_000, resolutionMs: 1_000 }), -4_000)
})

test('a clock that is off says in which direction, and by how much', () => {
  const reading = { before: 10_000, after: 10_000, resolutionMs: 0 }
  const ahead = checkClock("the gateway's clock", { ...reading, shown: 15_000 })
  const behind = checkClock("the gateway's clock", { ...reading, shown: 5_000 })
  assert.equal(ahead.what, "the gateway's clock is 5.0 s ahead of this machine's")
  assert.equal(behind.what, "the gateway's clock is 5.0 s behind this machine's")
  assert.equal(checkClock('it', { ...reading, shown: 11_000 }).state, 'good')
})
