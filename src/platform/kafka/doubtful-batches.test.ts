import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { CompressionTypes, Kafka, logLevel } from 'kafkajs'
import { pino } from 'pino'
import { silentLogger } from '../log.ts'
import { eventually } from '../running/eventually.fixture.ts'
import type { KafkaConnection } from './connection.ts'
import { consumeBatches } from './consumer.ts'
import { DoubtfulBatches } from './doubtful-batches.ts'
import { kafka, newTopic, publisher, unique } from './kafka.fixture.ts'
import { damagedBatch } from './kafkajs/record-batches/damaged-batch.ts'
import type { BatchMessage } from './kafkajs/record-batches/record-batch.ts'
import { readTopic } from './read-topic.ts'
import type { IncomingRecord } from './records.ts'
import { type TurnedBit, turningHeader, turningWire } from './turned-bit.fixture.ts'

const GZIP = Buffer.of(0x1f, 0x8b, 0x08)

/** The records of a topic from an offset up to the one of `last`. `pausesMs`: how long each pause before another fetch was. */
async function readFrom(
  t: TestContext,
  connection: KafkaConnection,
  topic: string,
  from: bigint,
  last: string,
  pausesMs: number[] = [],
  onRecord: (record: IncomingRecord) => Promise<void> | undefined = () => undefined,
): Promise<IncomingRecord[]> {
  const records: IncomingRecord[] = []
  let offset = from
  const consumption = consumeBatches({
    ...{ connection, groupId: unique('group'), topics: [topic], partitionsAtOnce: 1 },
    begin: async (_, log) => ({ offset, logId: (await log()).id }),
    handler: async (batch) => {
      records.push(...batch.records)
      offset = batch.nextOffset
      for (const record of batch.records) await onRecord(record)
    },
    log: pino({ level: 'error' }, { write: (line) => pausesMs.push(JSON.parse(line).retryInMs) }),
  })
  t.after(() => consumption.stop())
  await eventually(last, () => String(records.at(-1)?.value) === last, 30_000)
  await consumption.stop()
  return records
}

/** Reads a topic on a bad wire. */
async function readOver(t: TestContext, topic: string, bit: TurnedBit, last: string) {
  const { connection, turned } = await turningWire(t, bit)
  const pausesMs: number[] = []
  return { records: await readFrom(t, connection, topic, 0n, last, pausesMs), pausesMs, turned }
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
    /of the offsets 1 to 2 is damaged: its checksum, .* was wrong .* behind it begins at 3$/,
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

/** Whether the fetches are refused, one after the other. */
function refusals(
  batches: DoubtfulBatches,
  partition: string,
  from: bigint,
  fetches: BatchMessage[],
): boolean[] {
  return fetches.map((first) => {
    try {
      batches.demandCertain(partition, from, first)
      return false
    } catch {
      return true
    }
  })
}

const times = (count: number, message: BatchMessage) => Array<BatchMessage>(count).fill(message)

test('fetches of a damaged batch count by partition and offset, and a certain one ends the count', () => {
  const damaged = damagedBatch(7n, { named: 9n, next: null })
  const certain = { ...damaged, damaged: undefined } as unknown as BatchMessage
  const batches = new DoubtfulBatches()
  const refused = (partition: string, from: bigint, ...fetches: BatchMessage[]) =>
    refusals(batches, partition, from, fetches)
  assert.deepEqual(refused('commands/0', 7n, ...times(4, damaged)), [true, true, true, true])
  assert.deepEqual(refused('commands/1', 7n, damaged), [true])
  assert.deepEqual(refused('commands/0', 7n, damaged, damaged), [false, false])
  assert.deepEqual(refused('commands/0', 8n, damaged), [true])
  assert.deepEqual(refused('commands/0', 7n, certain), [false])
  assert.deepEqual(refused('commands/0', 8n, ...times(4, damaged)), [true, true, true, true])
})

test('where a damaged batch ends is believed only if the last two fetches say the same', () => {
  const damaged = damagedBatch(7n, { named: 9n, next: 10n })
  const other = damagedBatch(7n, { named: 9n, next: 14n })
  assert.deepEqual(
    refusals(new DoubtfulBatches(), 'commands/0', 7n, [...times(4, damaged), other, damaged, damaged]),
    [...[true, true, true, true], ...[true, true, false]],
  )
})

test('a first offset that does not follow is believed if two fetches in a row say the same', () => {
  const { damaged: _, ...message } = damagedBatch(7n, { named: 9n, next: null })
  const at = (batchFirst: bigint): BatchMessage => ({ ...message, batchFirst })
  const refused = (...fetches: BatchMessage[]) => refusals(new DoubtfulBatches(), 'commands/0', 7n, fetches)
  assert.deepEqual(refused(at(7n)), [false])
  assert.deepEqual(refused(at(3n), at(7n)), [true, false])
  assert.deepEqual(refused(at(3n), at(3n)), [true, false])
  assert.deepEqual(refused(at(3n), at(9n), at(9n)), [true, true, false])
})

/** The place of the first offset, and of the last one relative to it, in a batch. */
const [FIRST, LAST] = [0, 23]

for (const [what, count, turned] of [
  ['below what was read (12 becomes 4)', 1, { batch: 12n, at: FIRST + 7, bit: 3 }],
  [
    'below what was read (10 becomes 2, with records on both sides)',
    10,
    { batch: 10n, at: FIRST + 7, bit: 3 },
  ],
  ['beyond the end (3 becomes 67)', 1, { batch: 3n, at: FIRST + 7, bit: 6 }],
  ['below what was read, in the last batch (19 becomes 3)', 1, { batch: 19n, at: FIRST + 7, bit: 4 }],
] as const)
  test(`a first offset that turned ${what} loses no record`, async (t) => {
    const topic = await newTopic()
    const publish = publisher(t)
    const all = Array.from({ length: 20 }, (_, i) => `payout ${i}`)
    for (const text of all.slice(0, 20 - count)) await publish(topic, [text])
    await publish(topic, all.slice(20 - count))
    const wire = await turningHeader(t, { ...turned, times: 1 })
    const records: IncomingRecord[] = []
    const onRecord = (record: IncomingRecord) => void records.push(record)
    await readTopic({ connection: wire.connection, topic, onRecord, log: silentLogger })
    assert.equal(wire.turned(), 1)
    assert.deepEqual(texts(records), all)
  })

test('a first offset that turned as the first of a fetch, or alone in it, loses no record', async (t) => {
  const topic = await newTopic()
  const publish = publisher(t)
  const all = ['before', 'account 1', 'account 2', 'account 3', 'account 4']
  for (const text of all) await publish(topic, [text])
  const wire = await turningHeader(t, { batch: 4n, at: FIRST + 7, bit: 2, times: 1 })
  const records = await readFrom(t, wire.connection, topic, 4n, 'account 4')
  assert.equal(wire.turned(), 1)
  assert.deepEqual(texts(records), ['account 4'])
})

test('a position in the middle of a batch is read after one more fetch, and one at its beginning at once', async (t) => {
  const topic = await newTopic()
  const all = Array.from({ length: 20 }, (_, i) => `payout ${i}`)
  const publish = publisher(t)
  await publish(topic, all.slice(0, 10))
  await publish(topic, all.slice(10))
  for (const [from, pauses] of [
    [0n, []],
    [7n, [200]],
    [10n, []],
  ] as const) {
    const pausesMs: number[] = []
    const records = await readFrom(t, kafka(), topic, from, 'payout 19', pausesMs)
    assert.deepEqual(texts(records), all.slice(Number(from)))
    assert.deepEqual(pausesMs, pauses)
  }
})

for (const [what, bit] of [
  ['over intact batches', 1],
  ['beyond the end', 20],
] as const)
  test(`the last offset of a damaged batch that points ${what} neither skips a batch nor stops its partition`, async (t) => {
    const topic = await newTopic()
    const publish = publisher(t)
    for (const text of ['before', 'damaged', 'after 1', 'after 2', 'after 3']) await publish(topic, [text])
    const at = LAST + 3 - Math.floor(bit / 8)
    const wire = await turningHeader(t, { batch: 1n, at, bit: bit % 8, times: Number.POSITIVE_INFINITY })
    const records = await readFrom(t, wire.connection, topic, 0n, 'after 3')
    assert.deepEqual(
      records.map(({ offset, value }) => [offset, String(value)]),
      [
        [0n, 'before'],
        [1n, 'null'],
        [2n, 'after 1'],
        [3n, 'after 2'],
        [4n, 'after 3'],
      ],
    )
    assert.match(
      records[1]?.unreadable?.detail ?? '',
      /the offsets 1 to 1 is .* the batch behind it begins at 2$/,
    )
  })

test('a damaged last batch whose header points beyond the end is skipped up to the end, and what comes later is read', async (t) => {
  const topic = await newTopic()
  const publish = publisher(t)
  for (const text of ['before', 'damaged']) await publish(topic, [text])
  const wire = await turningHeader(t, { batch: 1n, at: LAST, bit: 4, times: Number.POSITIVE_INFINITY })
  const seen = readFrom(t, wire.connection, topic, 0n, 'later', [], (record) => {
    if (record.unreadable) return publish(topic, ['later'])
  })
  const records = await seen
  assert.deepEqual(
    records.map(({ offset }) => offset),
    [0n, 1n, 2n],
  )
  assert.match(
    records[1]?.unreadable?.detail ?? '',
    /names 268435457 as its last .* Kafka had offsets up to 1$/,
  )
})
