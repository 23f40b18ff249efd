import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { CompressionTypes, Kafka, logLevel } from 'kafkajs'
import { pino } from 'pino'
import { silentLogger } from '../log.ts'
import { eventually } from '../running/eventually.fixture.ts'
import { consumeBatches } from './consumer.ts'
import { DamagedBatches } from './damaged-batches.ts'
import { kafka, newTopic, publisher, unique } from './kafka.fixture.ts'
import { LIBRDKAFKA } from './kafkajs/record-batch.fixture.ts'
import { type BatchMessage, readRecordBatch } from './kafkajs/record-batch.ts'
import { readTopic } from './read-topic.ts'
import type { IncomingRecord } from './records.ts'
import { type TurnedBit, turningWire } from './turned-bit.fixture.ts'

const GZIP = Buffer.of(0x1f, 0x8b, 0x08)

/** Reads a topic on a bad wire: its records up to the one of `last`, and how long each pause before another fetch was. */
async function readOver(t: TestContext, topic: string, bit: TurnedBit, last: string) {
  const { connection, turned } = await turningWire(t, bit)
  const records: IncomingRecord[] = []
  const pausesMs: number[] = []
  let offset = 0n
  const consumption = consumeBatches({
    ...{ connection, groupId: unique('group'), topics: [topic], partitionsAtOnce: 1 },
    begin: async (_, log) => ({ offset, logId: (await log()).id }),
    handler: async (batch) => {
      records.push(...batch.records)
      offset = batch.nextOffset
    },
    log: pino({ level: 'error' }, { write: (line) => pausesMs.push(JSON.parse(line).retryInMs) }),
  })
  t.after(() => consumption.stop())
  await eventually(last, () => String(records.at(-1)?.value) === last, 30_000)
  return { records, pausesMs, turned }
}

const texts = (records: readonly IncomingRecord[]): string[] => records.map(({ value }) => String(value))

test('a bit that turns on the way from Kafka changes no record: its batch is fetched again', async (t) => {
  const topic = await newTopic()
  const publish = publisher(t)
  for (const text of ['before', 'account 50100123456789', 'after']) await publish(topic, [text])
  const bit = { content: '50100123456789', way: 'from Kafka', times: 1 } as const
  const { records, turned } = await readOver(t, topic, bit, 'after')
  assert.equal(turned(), 1)
  assert.deepEqual(texts(records), ['before', 'account 50100123456789', 'after'])
})

test('a bit that turns once in a compressed batch loses none of its records', async (t) => {
  const topic = await newTopic()
  const producer = new Kafka({ ...kafka(), logLevel: logLevel.NOTHING }).producer()
  await producer.connect()
  t.after(() => producer.disconnect())
  const messages = Array.from({ length: 20 }, (_, i) => ({ value: `payout ${i}` }))
  await producer.send({ topic, compression: CompressionTypes.GZIP, messages })
  const bit = { content: GZIP, way: 'from Kafka', times: 1 } as const
  const { records, turned } = await readOver(t, topic, bit, 'payout 19')
  assert.equal(turned(), 1)
  assert.deepEqual(
    texts(records),
    messages.map(({ value }) => value),
  )
})

test('a batch that Kafka keeps damaged is one unreadable record after five fetches with pauses, and what follows is read', async (t) => {
  const topic = await newTopic()
  const publish = publisher(t)
  for (const batch of [['before'], ['first', 'account 50100123456789'], ['after']])
    await publish(topic, batch)
  const bit = { content: '50100123456789', way: 'from Kafka', times: Number.POSITIVE_INFINITY } as const
  const { records, pausesMs } = await readOver(t, topic, bit, 'after')
  assert.deepEqual(texts(records), ['before', 'null', 'after'])
  assert.deepEqual(
    records.map(({ offset, unreadable }) => [offset, unreadable?.reason]),
    [
      [0n, undefined],
      [2n, 'unreadable-batch'],
      [3n, undefined],
    ],
  )
  assert.match(
    records[1]?.unreadable?.detail ?? '',
    /of the offsets 1 to 2 is damaged: its checksum was wrong/,
  )
  assert.deepEqual(pausesMs, [200, 400, 800, 1_600])
})

test('who reads a whole topic gets what Kafka has, and one unreadable record for what Kafka keeps damaged', async (t) => {
  const topic = await newTopic()
  const publish = publisher(t)
  for (const text of ['paid 1', 'paid 2']) await publish(topic, [text])
  for (const [times, expected] of [
    [1, ['paid 1', 'paid 2']],
    [Number.POSITIVE_INFINITY, ['null', 'paid 2']],
  ] as const) {
    const { connection, turned } = await turningWire(t, { content: 'paid 1', way: 'from Kafka', times })
    const records: IncomingRecord[] = []
    const onRecord = (record: IncomingRecord) => void records.push(record)
    await readTopic({ connection, topic, onRecord, log: silentLogger })
    assert.ok(turned() > 0)
    assert.deepEqual(texts(records), expected)
  }
})

test('fetches of a damaged batch count by partition and offset, and an intact one ends the count', async () => {
  const intact = await readRecordBatch(Buffer.from(LIBRDKAFKA.zstd, 'base64'))
  const damaged: BatchMessage[] = intact.map((message) => ({ ...message, isDamaged: true }))
  const batches = new DamagedBatches()
  const isRefused = (partition: string, from: bigint, messages = damaged) => {
    try {
      batches.demandIntact(partition, from, messages)
      return false
    } catch {
      return true
    }
  }
  for (let fetch = 1; fetch <= 4; fetch++) assert.ok(isRefused('commands/0', 7n))
  assert.ok(isRefused('commands/1', 7n))
  assert.ok(!isRefused('commands/0', 7n))
  assert.ok(!isRefused('commands/0', 7n))
  assert.ok(isRefused('commands/0', 8n))
  assert.ok(!isRefused('commands/0', 8n, intact))
  for (let fetch = 1; fetch <= 4; fetch++) assert.ok(isRefused('commands/0', 8n))
})
