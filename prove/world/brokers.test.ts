import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { connectAdmin } from '../../src/platform/kafka/admin.ts'
import { kafkaFor } from '../../src/platform/kafka/connection.ts'
import { consumeBatches } from '../../src/platform/kafka/consumer.ts'
import { unique } from '../../src/platform/kafka/kafka.fixture.ts'
import { startAt } from '../../src/platform/kafka/offsets.ts'
import { createPublisher } from '../../src/platform/kafka/producer.ts'
import { silentLogger } from '../../src/platform/log.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { Brokers } from './brokers.ts'

let dir: string
let brokers: Brokers
let connection: { brokers: string[]; clientId: string }

before(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'prove-'))
  brokers = await Brokers.start(dir, silentLogger)
  connection = { brokers: brokers.direct, clientId: 'test' }
})

after(async () => {
  await brokers.stop()
  await rm(dir, { recursive: true })
})

test('a publish in which a leader dies reaches its successor, even if the leader acknowledged its own part', async (t) => {
  const publisher = createPublisher('test', connection, silentLogger)
  t.after(() => publisher.close())
  const topic = await makeTopic([1, 2], [2, 1])
  const records = Array.from({ length: 20 }, (_, i) => ({ topic, key: `${i}`, value: Buffer.from('') }))
  await publisher.publish(records)
  // Ten of these keys belong to each partition; a first try, at brokers that have only just learned of the topic, may
  // be repeated.
  const once = await lengths(topic)
  assert.ok(once.every((length) => length >= 10))

  brokers.freeze(1)
  const publishing = publisher.publish(records)
  await eventually('the successor', async () => (await brokers.leaderOf(topic)) === 2)
  await brokers.kill(1)
  await publishing
  for (const [partition, length] of (await lengths(topic)).entries()) {
    const more = length - (once[partition] as number)
    assert.ok(more >= 10, `partition ${partition} got ${more} records`)
  }
})

test('while one partition has no leader, old and new consumers read the others, and it too once it has one', async (t) => {
  await brokers.allUp()
  const topic = await makeTopic([1], [2], [3])
  const producer = kafkaFor(connection, silentLogger, t.signal).producer()
  await producer.connect()
  t.after(() => producer.disconnect())
  const send = (value: string, ...partitions: number[]) =>
    producer.sendBatch({
      topicMessages: partitions.map((partition) => ({ topic, messages: [{ value, partition }] })),
    })
  const one = reader('one')
  await send('before', 0, 1, 2)
  await eventually('all partitions', () => one.seen.size === 3)

  await brokers.kill(3)
  await send('without', 0, 1)
  await eventually('the others', () => one.seen.has('without/0') && one.seen.has('without/1'))
  const two = reader('two')
  await eventually('the others, by another', () => two.seen.has('without/0') && two.seen.has('without/1'))

  await brokers.allUp()
  await send('again', 0, 1, 2)
  const sent = ['again/0', 'again/1', 'again/2', 'before/0', 'before/1', 'before/2', 'without/0', 'without/1']
  await eventually('all again', () => [one, two].every(({ seen }) => seen.size === sent.length))
  for (const { seen } of [one, two]) assert.deepEqual([...seen].sort(), sent)

  function reader(groupId: string) {
    const seen = new Set<string>()
    const places = new Map<number, { offset: bigint; logId: string | null }>()
    const consumption = consumeBatches({
      ...{ connection, groupId, topics: [topic], partitionsAtOnce: 2, log: silentLogger },
      begin: async ({ partition }, logOf) => {
        const log = await logOf()
        const place = { offset: startAt(places.get(partition) ?? null, log).offset, logId: log.id }
        places.set(partition, place)
        return place
      },
      handler: async ({ partition, records, nextOffset, stored }) => {
        for (const { value } of records) seen.add(`${value}/${partition}`)
        places.set(partition, { ...stored, offset: nextOffset })
      },
    })
    t.after(() => consumption.stop())
    return { seen }
  }
})

/** Its partitions, each on these brokers. */
async function makeTopic(...replicas: number[][]): Promise<string> {
  const topic = unique('test')
  const ended = new AbortController()
  const admin = kafkaFor(connection, silentLogger, ended.signal).admin()
  await admin.connect()
  const replicaAssignment = replicas.map((replicas, partition) => ({ partition, replicas }))
  await admin.createTopics({ waitForLeaders: false, topics: [{ topic, replicaAssignment }] })
  await admin.disconnect()
  ended.abort()
  await brokers.leaderOf(topic)
  return topic
}

/** How many records each partition holds. */
async function lengths(topic: string): Promise<number[]> {
  const admin = await connectAdmin(connection, silentLogger)
  const ranges = await admin.ranges(topic)
  await admin.close()
  return ranges.sort((a, b) => a.partition - b.partition).map(({ low, high }) => Number(high - low))
}
