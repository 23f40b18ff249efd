import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { lockOffset, moveOffset } from '../intake/sql/offsets.ts'
import { systemClock } from '../platform/clock.ts'
import { untilCaughtUp } from './catch-up.ts'

const topic = 'payout.commands'
const signal = new AbortController().signal
/** Of the first, Kafka has dropped ten messages; the third was never written to. */
const ENDS = [
  { partition: 0, low: 10n, high: 30n },
  { partition: 1, low: 0n, high: 5n },
  { partition: 2, low: 0n, high: 0n },
]

test('a recovery waits until intake has taken in all that Kafka held, and counts what it no longer holds as taken', async (t) => {
  const { db } = await freshDatabase(t)
  await db.run(lockOffset, { topic, partition: 0 })
  await db.run(moveOffset, { topic, partition: 0, nextOffset: 4n })
  const told: bigint[] = []
  const caughtUp = await untilCaughtUp(topic, ENDS, {
    db,
    clock: systemClock,
    signal,
    onBehind(behind) {
      told.push(behind)
      void takeIn(told.length)
    },
  })
  assert.deepEqual([caughtUp, told], [{ kind: 'caught-up' }, [25n, 20n]])

  async function takeIn(time: number): Promise<void> {
    const [partition, nextOffset] = time === 1 ? [1, 7n] : [0, 30n]
    await db.run(lockOffset, { topic, partition })
    await db.run(moveOffset, { topic, partition, nextOffset })
  }
})

test('where nothing is taken in for a minute it says what is left', async (t) => {
  const { db } = await freshDatabase(t)
  let now = 0
  const clock = { ...systemClock, monotonic: () => (now += 31_000) }
  const stuck = await untilCaughtUp(topic, ENDS, { db, clock, signal, onBehind: () => undefined })
  assert.deepEqual(stuck, { kind: 'stuck', behind: 25n })
})
