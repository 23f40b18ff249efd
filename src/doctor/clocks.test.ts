import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkClock, skewMs } from './clocks.ts'

test('network delay and whole-second resolution never make a correct clock look wrong', () => {
  for (const before of [500_000, 500_400, 500_999]) {
    for (const after of [before, before + 700]) {
      for (const read of [before, after]) {
        const shown = Math.floor(read / 1_000) * 1_000
        assert.equal(skewMs({ before, after, shown, resolutionMs: 1_000 }), 0)
      }
    }
  }
})

test('a wrong clock is measured from the nearest moment at which it could have been read', () => {
  assert.equal(skewMs({ before: 10_000, after: 10_050, shown: 15_000, resolutionMs: 1 }), 4_950)
  assert.equal(skewMs({ before: 10_000, after: 10_050, shown: 5_000, resolutionMs: 1_000 }), -4_000)
})

test('the finding about a wrong clock says in which direction it is off, and by how much', () => {
  const reading = { before: 10_000, after: 10_000, resolutionMs: 0 }
  const ahead = checkClock("the gateway's clock", { ...reading, shown: 15_000 })
  const behind = checkClock("the gateway's clock", { ...reading, shown: 5_000 })
  assert.equal(ahead.what, "the gateway's clock is 5.0 s ahead of this machine's")
  assert.equal(behind.what, "the gateway's clock is 5.0 s behind this machine's")
  assert.equal(checkClock('it', { ...reading, shown: 11_000 }).state, 'good')
})
