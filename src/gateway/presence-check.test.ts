import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PresenceCheck, SPEAKS_FOR_MS } from './presence-check.ts'

/** A presence check with a clock that the test moves, at a gateway that finds the orders in `there`. */
function controlled(there: string[], known: string[]) {
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
  const { presenceCheck, asked, pass, holds } = controlled(there, ['other'])
  presenceCheck.found('s', 'M1')
  pass(SPEAKS_FOR_MS - 1)
  assert.deepEqual([await holds(), asked], [true, []])
  pass(1)
  assert.deepEqual([await holds(), asked], [true, ['M1']])
  assert.deepEqual([await holds(), asked], [true, ['M1']])
  pass(SPEAKS_FOR_MS)
  there.length = 0
  assert.deepEqual([await holds(), asked], [false, ['M1', 'M1', 'other']])
})

test('an order found before the machine was suspended counts for nothing after it', async () => {
  const { presenceCheck, sleep, holds } = controlled([], ['M1'])
  presenceCheck.found('s', 'M1')
  sleep(SPEAKS_FOR_MS)
  assert.equal(await holds(), false)
})

test('before any order was found, it asks about a known one; without one nothing is proved', async () => {
  const one = controlled(['M1'], ['M1'])
  assert.deepEqual([await one.holds(), one.asked], [true, ['M1']])
  assert.equal(await controlled(['M1'], ['M2']).holds(), false)
  const none = controlled(['M1'], [])
  assert.deepEqual([await none.holds(), none.asked], [false, []])
})

test('of the last order found and the known ones, any that is found is enough; it asks about three', async () => {
  const archived = controlled(['M9'], ['M8', 'M9', 'M1'])
  archived.presenceCheck.found('s', 'M1')
  archived.pass(SPEAKS_FOR_MS)
  assert.deepEqual([await archived.holds(), archived.asked], [true, ['M1', 'M8', 'M9']])
  archived.pass(SPEAKS_FOR_MS)
  assert.deepEqual([await archived.holds(), archived.asked.slice(3)], [true, ['M9']])
  const gone = controlled(['M4'], ['M1', 'M2', 'M3', 'M4'])
  assert.deepEqual([await gone.holds(), gone.asked], [false, ['M1', 'M2', 'M3']])
})

test('an order found with other settings proves nothing', async () => {
  const { presenceCheck, holds } = controlled([], ['M1'])
  presenceCheck.found('others', 'M1')
  assert.equal(await holds(), false)
})
