import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PresenceCheck, SPEAKS_FOR_MS } from './presence-check.ts'

/** A presence check with a clock that the test moves, at a gateway that finds the orders in `there`. */
function controlled(there: string[], known: readonly string[] | null) {
  const at = { wall: 0, monotonic: 0 }
  const asked: string[] = []
  const presenceCheck = new PresenceCheck({ now: () => at.wall, monotonic: () => at.monotonic })
  const asking = {
    known: async () => known,
    finds: async (mchOrderNo: string) => {
      asked.push(mchOrderNo)
      return there.includes(mchOrderNo)
    },
  }
  const pass = (ms: number) => {
    at.wall += ms
    at.monotonic += ms
  }
  /** Suspends the machine for this long. */
  const sleep = (ms: number) => {
    at.wall += ms
  }
  return {
    presenceCheck,
    asked,
    pass,
    sleep,
    holds: (settings = 's') => presenceCheck.holds(settings, asking),
  }
}

test('a found order counts for a moment, and is then asked about again', async () => {
  const there = ['M1']
  const { presenceCheck, asked, pass, holds } = controlled(there, ['M1'])
  presenceCheck.found('s', 'M1')
  pass(SPEAKS_FOR_MS - 1)
  assert.deepEqual([await holds(), asked], [true, []])
  pass(1)
  assert.deepEqual([await holds(), asked], [true, ['M1']])
  assert.deepEqual([await holds(), asked], [true, ['M1']])
  pass(SPEAKS_FOR_MS)
  there.length = 0
  assert.deepEqual([await holds(), await holds(), asked], [false, false, ['M1', 'M1', 'M1']])
})

test('an order found before the machine was suspended counts for nothing after it', async () => {
  const { presenceCheck, sleep, holds } = controlled([], ['M1'])
  presenceCheck.found('s', 'M1')
  sleep(SPEAKS_FOR_MS)
  assert.equal(await holds(), false)
})

test('all known orders must be found: a gateway may have forgotten old ones, or not know new ones yet', async () => {
  const both = controlled(['M1', 'M3'], ['M1', 'M3'])
  assert.deepEqual([await both.holds(), both.asked], [true, ['M1', 'M3']])
  for (const there of ['M1', 'M3']) {
    const one = controlled([there], ['M1', 'M3'])
    one.presenceCheck.found('s', there)
    assert.equal(await one.holds(), false)
  }
  const another = controlled(['M1'], ['M1'])
  another.presenceCheck.found('s', 'M2')
  assert.deepEqual([await another.holds(), another.asked], [true, ['M1']])
  for (const [orders, held] of [
    [[], false],
    [null, null],
  ] as const) {
    const none = controlled(['M1'], orders)
    none.presenceCheck.found('s', 'M1')
    assert.deepEqual([await none.holds(), none.asked], [held, []])
  }
})

test('an order found with other settings proves nothing', async () => {
  const { presenceCheck, holds } = controlled([], ['M1'])
  presenceCheck.found('others', 'M1')
  assert.equal(await holds(), false)
})
