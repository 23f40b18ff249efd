import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { eventually } from '../src/platform/eventually.fixture.ts'
import { connectAdmin } from '../src/platform/kafka/admin.ts'
import { kafkaFor } from '../src/platform/kafka/connection.ts'
import { createPublisher } from '../src/platform/kafka/producer.ts'
import { silentLogger } from '../src/platform/log.ts'
import { Brokers } from './brokers.ts'

const TOPIC = 'test'

test('a publish in which a leader dies reaches its successor, also when that has acknowledged its own part', async (t) => {
  const dir = await mkdtemp(path.join(tmpdir(), 'prove-'))
  const brokers = await Brokers.start(dir, silentLogger)
  const connection = { brokers: brokers.direct, clientId: 'test' }
  const publisher = createPublisher('test', connection, silentLogger)
  t.after(async () => {
    await publisher.close()
    await brokers.stop()
    await rm(dir, { recursive: true })
  })
  await makeTopic([
    { partition: 0, replicas: [1, 2] },
    { partition: 1, replicas: [2, 1] },
  ])
  const records = Array.from({ length: 20 }, (_, i) => ({
    topic: TOPIC,
    key: `${i}`,
    value: Buffer.from(''),
  }))
  await publisher.publish(records)
  const once = await lengths()
  assert.ok(once.every((length) => length > 0))

  brokers.freeze(1)
  const publishing = publisher.publish(records)
  await eventually('the successor', async () => (await brokers.leaderOf(TOPIC)) === 2)
  await brokers.kill(1)
  await publishing
  for (const [partition, length] of (await lengths()).entries()) {
    assert.ok(length >= 2 * (once[partition] as number), `partition ${partition} holds ${length} records`)
  }

  async function makeTopic(replicaAssignment: { partition: number; replicas: number[] }[]): Promise<void> {
    const admin = kafkaFor(connection, silentLogger).admin()
    await admin.connect()
    await admin.createTopics({ waitForLeaders: true, topics: [{ topic: TOPIC, replicaAssignment }] })
    await admin.disconnect()
  }

  /** How many records each partition holds. */
  async function lengths(): Promise<number[]> {
    const admin = await connectAdmin(connection, silentLogger)
    const ranges = await admin.ranges(TOPIC)
    await admin.close()
    return ranges.sort((a, b) => a.partition - b.partition).map(({ low, high }) => Number(high - low))
  }
})
