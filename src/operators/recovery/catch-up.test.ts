import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { standAt } from '../../../test/ledger.ts'
import { topicNames } from '../../messages/topics.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { untilCaughtUp } from './catch-up.ts'

const topics = topicNames()
const topic = topics.commands
const id = 'log'
const signal = new AbortController().signal
/** Kafka has dropped ten messages of the first; the third was never written to. */
const ENDS = [
  { id, partition: 0, low: 10n, high: 30n },
  { id, partition: 1, low: 0n, high: 5n },
  { id, partition: 2, low: 0n, high: 0n },
]

test('a recovery waits until intake has stored everything that Kafka held, and counts what Kafka no longer holds as stored', async (t) => {
  const { db } = await freshDatabase(t)
  await standAt({ db, topics }, 0, { offset: 4n, logId: id })
  await standAt({ db, topics }, 1, { offset: 5n, logId: 'of a topic that was made again' })
  const told: bigint[] = []
  const caughtUp = await untilCaughtUp(
    { topic, ends: ENDS, merchantIds: ['acme'] },
    {
      db,
      clock: systemClock,
      signal,
      onBehind(behind) {
        told.push(behind)
        void takeIn(told.length)
      },
    },
  )
  assert.deepEqual([caughtUp, told], [{ kind: 'caught-up' }, [25n, 20n]])

  async function takeIn(time: number): Promise<void> {
    const [partition, offset] = time === 1 ? ([1, 7n] as const) : ([0, 30n] as const)
    await standAt({ db, topics }, partition, { offset, logId: id })
  }
})

test('if intake stores nothing for a minute, the recovery reports what is left', async (t) => {
  const { db } = await freshDatabase(t)
  let now = 0
  const clock = { ...systemClock, monotonic: () => (now += 31_000) }
  const stuck = await untilCaughtUp(
    { topic, ends: ENDS, merchantIds: ['acme'] },
    { db, clock, signal, onBehind: () => undefined },
  )
  assert.deepEqual(stuck, { kind: 'stuck', behind: 25n })
})
