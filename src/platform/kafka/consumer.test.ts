import assert from 'node:assert/strict'
import net from 'node:net'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { CompressionTypes, Kafka, logLevel, Partitioners, type Transaction } from 'kafkajs'
import { pino } from 'pino'
import { silentLogger } from '../log.ts'
import { eventually } from '../running/eventually.fixture.ts'

import { silentWire } from '../wire.fixture.ts'
import { connectAdmin } from './admin.ts'
import { type KafkaConnection, kafkaFor } from './connection.ts'
import { type ConsumeOptions, consumeBatches } from './consumer.ts'
import { withOffsets } from './false-offsets.fixture.ts'
import {
  kafka,
  lagOf,
  makeTopic,
  newTopic,
  openTransaction,
  publisher,
  remakeTopic,
  unique,
} from './kafka.fixture.ts'
import { LIMITS } from './kafkajs/record-batches/record-batch.ts'
import { startAt } from './offsets.ts'
import { kafkaPing } from './ping.ts'
import { createPublisher } from './producer.ts'
import type { RecordBatch } from './records.ts'

/**
 * A store of offsets and texts, as Postgres is for the stages. It refuses a batch that does not begin at its
 * position.
 */
class Store {
  readonly offsets = new Map<string, bigint>()
  readonly logs = new Map<string, string | null>()
  readonly seen: { partition: number; offset: bigint; text: string }[] = []
  readonly remarks: string[] = []
  readonly epochs: unknown[] = []

  readonly begin: ConsumeOptions['begin'] = async ({ partition }, logOf) => {
    const key = `${partition}`
    const offset = this.offsets.get(key)
    const log = await logOf()
    const before = offset === undefined ? null : { offset, logId: this.logs.get(key) ?? null }
    const start = startAt(before, log)
    if (start.remark !== 'none') this.remarks.push(start.remark)
    this.offsets.set(key, start.offset)
    this.logs.set(key, log.id)
    return { offset: start.offset, logId: log.id }
  }
  readonly take = async ({ partition, records, nextOffset, stored, epoch }: RecordBatch) => {
    const stands = this.offsets.get(`${partition}`) ?? -1n
    if (stands < stored.offset) throw new Error(`stands at ${stands}, and not at ${stored.offset}`)
    for (const { offset, value } of records) {
      if (offset >= stands) this.seen.push({ partition, offset, text: String(value) })
    }
    this.offsets.set(`${partition}`, nextOffset)
    this.epochs.push(epoch)
  }
  get texts(): string[] {
    return this.seen.map(({ text }) => text)
  }
}

function consume(t: TestContext, topic: string, store: Store, more: Partial<ConsumeOptions> = {}) {
  const consumption = consumeBatches({
    connection: kafka(),
    groupId: unique('group'),
    topics: [topic],
    partitionsAtOnce: 4,
    begin: store.begin,
    handler: store.take,
    log: silentLogger,
    ...more,
  })
  t.after(() => consumption.stop())
  return consumption
}

const numbers = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, i) => String(from + i))

const bare = () => new Kafka({ ...kafka(), logLevel: logLevel.NOTHING })

/** A key for each of the partitions 0 to `partitions` - 1, found by asking the broker where it put them. */
async function keysOfPartitions(t: TestContext, partitions: number): Promise<string[]> {
  const topic = await newTopic(partitions)
  const publish = publisher(t)
  for (const key of numbers(0, 40)) await publish(topic, [key], key)
  const store = new Store()
  const consumption = consume(t, topic, store)
  await eventually('all keys read', () => store.seen.length === 41)
  await consumption.stop()
  return numbers(0, partitions - 1).map((p) => store.seen.find((s) => s.partition === Number(p))?.text ?? '')
}

test('a partition that is added while a consumer reads is read soon', async (t) => {
  const topic = await newTopic(1)
  const store = new Store()
  consume(t, topic, store)
  await eventually('the first partition is read', () => store.offsets.has('0'))
  const admin = bare().admin()
  await admin.connect()
  await admin.createPartitions({ topicPartitions: [{ topic, count: 2 }] })
  await admin.disconnect()
  await eventually('the second is, too', () => store.offsets.has('1'))
})

test('every record of a partition arrives in order and once', async (t) => {
  const topic = await newTopic()
  const store = new Store()
  const publish = publisher(t)
  await publish(topic, numbers(1, 500))
  consume(t, topic, store, { maxBytesPerPartition: 2_000 })
  await eventually('500 records', () => store.seen.length >= 500)
  await publish(topic, numbers(501, 600))
  await eventually('600 records', () => store.seen.length >= 600)
  assert.deepEqual(store.texts, numbers(1, 600))
})

test('reading begins where the store says, whatever was committed to Kafka', async (t) => {
  const topic = await newTopic()
  const groupId = unique('group')
  await publisher(t)(topic, numbers(0, 99))
  const admin = await connectAdmin(kafka(), silentLogger)
  t.after(() => admin.close())
  const before = consume(t, topic, new Store(), { groupId })
  await eventually('everything committed', async () =>
    (await lagOf(groupId, topic)).every(({ committed, lag }) => committed === 100n && lag === 0n),
  )
  await before.stop()

  const restored = new Store()
  restored.offsets.set('0', 40n)
  const again = consume(t, topic, restored, { groupId })
  await eventually('what the store lost', () => restored.seen.length >= 60)
  assert.deepEqual(restored.texts, numbers(40, 99))
  await again.stop()

  const empty = new Store()
  consume(t, topic, empty, { groupId })
  await eventually('everything', () => empty.seen.length >= 100)
  assert.deepEqual(empty.texts, numbers(0, 99))
})

test('a member whose clock is set back joins its group again, because KafkaJS would send no heartbeat', async (t) => {
  const topic = await newTopic(1)
  const [store, lines] = [new Store(), [] as string[]]
  const log = pino({}, { write: (line: string) => void lines.push(line) })
  consume(t, topic, store, { log })
  await eventually('the partition is read', () => store.offsets.has('0'))
  store.offsets.clear()
  const { now } = Date
  t.after(() => {
    Date.now = now
  })
  Date.now = () => now() - 3_600_000
  await eventually('it is read anew', () => store.offsets.has('0'))
  assert.ok(lines.some((line) => line.includes('the clock was set back')))
})

test('another program that reads other topics in the same group is told in the log', async (t) => {
  const [topic, other] = [await newTopic(4), await newTopic(4)]
  const groupId = unique('group')
  const lines: string[] = []
  const log = pino({ level: 'error' }, { write: (line: string) => void lines.push(line) })
  consume(t, topic, new Store(), { groupId, log })
  consume(t, other, new Store(), { groupId, log })
  await eventually('a line', () =>
    lines.some((line) => line.includes('reads other topics in this consumer group')),
  )
  assert.ok(lines.every((line) => line.includes(groupId)))
})

test('a handler that fails gets the same records again, and other partitions go on meanwhile', async (t) => {
  const [key0 = '', key1 = ''] = await keysOfPartitions(t, 2)
  const topic = await newTopic(2)
  const publish = publisher(t)
  await publish(topic, numbers(0, 9), key0)
  await publish(topic, numbers(0, 9), key1)
  const store = new Store()
  let broken = true
  let attempts = 0
  consume(t, topic, store, {
    handler: async (batch) => {
      if (batch.partition === 0 && broken) {
        attempts++
        throw new Error('store is down')
      }
      await store.take(batch)
    },
  })
  const textsOf = (partition: number) =>
    store.seen.filter((s) => s.partition === partition).map(({ text }) => text)
  await eventually('two attempts', () => attempts >= 2)
  await publish(topic, numbers(10, 19), key1)
  await eventually('the other partition', () => textsOf(1).length >= 20)
  assert.deepEqual(textsOf(0), [])
  broken = false
  await publish(topic, numbers(10, 19), key0)
  await eventually('the failed partition', () => textsOf(0).length >= 20)
  assert.deepEqual(textsOf(0), numbers(0, 19))
  assert.deepEqual(textsOf(1), numbers(0, 19))
})

test('if the store cannot report its offset, the consumer asks again and reads nothing before', async (t) => {
  const topic = await newTopic()
  await publisher(t)(topic, numbers(0, 9))
  const store = new Store()
  store.offsets.set('0', 5n)
  let asked = 0
  consume(t, topic, store, {
    begin: async (at, logOf, known) => {
      if (++asked < 3) throw new Error('store is down')
      return store.begin(at, logOf, known)
    },
  })
  await eventually('five records', () => store.seen.length >= 5)
  assert.deepEqual(store.texts, numbers(5, 9))
})

test('two members of a group share the partitions, and one that leaves loses nothing', async (t) => {
  const topic = await newTopic(4)
  const groupId = unique('group')
  const publish = publisher(t)
  const store = new Store()
  const one = consume(t, topic, store, { groupId })
  await eventually('one member has all', () => one.reading().length === 4)
  const two = consume(t, topic, store, { groupId })
  await eventually('both have half', () => one.reading().length === 2 && two.reading().length === 2)
  for (const text of numbers(0, 99)) await publish(topic, [text], text)
  await one.stop()
  for (const text of numbers(100, 199)) await publish(topic, [text], text)
  await eventually('every record', () => new Set(store.texts).size === 200)
  for (const partition of [0, 1, 2, 3]) {
    const offsets = [
      ...new Set(store.seen.filter((s) => s.partition === partition).map((s) => Number(s.offset))),
    ]
    assert.deepEqual(offsets, numbers(0, offsets.length - 1).map(Number))
  }
  assert.equal(two.reading().length, 4)
})

test('a member whose every batch fails leaves its partitions to one that can store, and joins again after a while', async (t) => {
  const topic = await newTopic(2)
  const groupId = unique('group')
  const publish = publisher(t)
  const store = new Store()
  let isUp = false
  const sick = consume(t, topic, store, {
    ...{ groupId, longestFailingMs: 1_000, awayMs: 2_000 },
    handler: async (batch) => {
      if (!isUp) throw new Error('store is down')
      await store.take(batch)
    },
    ready: async () => {
      if (!isUp) throw new Error('store is down')
    },
  })
  for (const text of numbers(0, 39)) await publish(topic, [text], text)
  const well = consume(t, topic, store, { groupId })
  await eventually('every record', () => new Set(store.texts).size === 40, 30_000)
  isUp = true
  await eventually('both to read', () => sick.reading().length === 1 && well.reading().length === 1)
})

test('a member that left because it cannot work does not join again until it can', async (t) => {
  const topic = await newTopic(2)
  const groupId = unique('group')
  const store = new Store()
  const lines: string[] = []
  let [isUp, asked, joined] = [false, 0, 0]
  const sick = consume(t, topic, store, {
    ...{ groupId, longestFailingMs: 500, awayMs: 100 },
    log: pino({ level: 'info' }, { write: (line: string) => void lines.push(line) }),
    begin: async () => {
      joined++
      throw new Error('store is down')
    },
    ready: async () => {
      asked++
      if (!isUp) throw new Error(asked < 6 ? 'store is down' : 'registry is down')
    },
  })
  await eventually('that it was asked again and again', () => asked > 8, 30_000)
  const before = joined
  await eventually('more of that', () => asked > 16)
  assert.equal(joined, before)
  isUp = true
  await eventually('another try', () => joined > before)
  await sick.stop()
  const words = lines.filter((line) => /for another reason|joins the group/.test(line))
  assert.match(words[0] ?? '', /registry is down/)
  assert.equal(words.length, 2)
})

test('while one batch is in hand, what comes for other partitions is handled, and then what follows it', async (t) => {
  const topic = await newTopic(2)
  const publish = publisher(t)
  const [one = '', other = ''] = await keysOfPartitions(t, 2)
  const store = new Store()
  const { promise: done, resolve: finish } = Promise.withResolvers<void>()
  const groupId = unique('group')
  consume(t, topic, store, {
    groupId,
    handler: async (batch) => {
      if (batch.records.some(({ value }) => String(value) === 'slow')) await done
      await store.take(batch)
    },
  })
  await publish(topic, ['slow'], one)
  for (const text of ['a', 'b', 'c']) {
    await publish(topic, [text], other)
    await eventually(`${text} of the other partition`, () => store.texts.includes(text), 30_000)
  }
  await publish(topic, ['next'], one)
  finish()
  await eventually('what follows', () => store.texts.includes('next'), 30_000)
  assert.deepEqual(store.texts, ['a', 'b', 'c', 'slow', 'next'])
  const admin = await connectAdmin(kafka(), silentLogger)
  t.after(() => admin.close())
  await eventually('all of it committed', async () =>
    (await lagOf(groupId, topic)).every(({ lag }) => lag === 0n),
  )
})

test('a batch that waits for its turn is not begun after a stop', async (t) => {
  const topic = await newTopic(4)
  const publish = publisher(t)
  const store = new Store()
  const { promise: done, resolve: finish } = Promise.withResolvers<void>()
  let begun = 0
  const member = consume(t, topic, store, {
    partitionsAtOnce: 1,
    handler: async (batch) => {
      begun++
      await done
      await store.take(batch)
    },
  })
  for (const text of numbers(0, 19)) await publish(topic, [text], text)
  await eventually('the first one in hand', () => begun === 1)
  // KafkaJS goes on without it, and hands out the next ones.
  await pause(2_500)
  const stopping = member.stop()
  finish()
  await stopping
  assert.equal(begun, 1)
})

test('what a member stored after it had lost the partition is committed by the next one', async (t) => {
  const topic = await newTopic(1)
  const groupId = unique('group')
  const publish = publisher(t)
  const store = new Store()
  const admin = await connectAdmin(kafka(), silentLogger)
  t.after(() => admin.close())
  const isCommitted = async () => (await lagOf(groupId, topic)).every(({ lag }) => lag === 0n)
  const { promise: done, resolve: finish } = Promise.withResolvers<void>()
  let begun = 0
  const first = consume(t, topic, store, {
    groupId,
    handler: async (batch) => {
      if (++begun === 2) await done
      await store.take(batch)
    },
  })
  await publish(topic, ['quick'])
  await eventually('the first offset committed', async () => begun === 1 && (await isCommitted()))
  await publish(topic, ['slow'])
  await eventually('the batch in hand', () => begun === 2)
  const stopping = first.stop()
  finish()
  await stopping
  assert.deepEqual(store.texts, ['quick', 'slow'])
  consume(t, topic, store, { groupId })
  await eventually('its offset committed', isCommitted)
})

test('no more batches are in hand than the consumer may handle at once, however long they take, and a stop does not wait for what never answers', async (t) => {
  const topic = await newTopic(6)
  const publish = publisher(t)
  const store = new Store()
  const lines: string[] = []
  let [inHand, most, isAsked] = [0, 0, false]
  const member = consume(t, topic, store, {
    ...{ partitionsAtOnce: 2, longestFailingMs: 0, awayMs: 100 },
    handler: async () => {
      most = Math.max(most, ++inHand)
      await pause(1_500)
      inHand--
      throw new Error('store is down')
    },
    log: pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) }),
    ready: async () => {
      if (!lines.some((line) => line.includes('left the group'))) throw new Error('store is down')
      isAsked = true
      await new Promise(() => undefined)
    },
  })
  for (const text of numbers(0, 29)) await publish(topic, [text], text)
  await eventually('a question that nothing answers', () => isAsked, 30_000)
  await member.stop()
  consume(t, topic, store, {
    partitionsAtOnce: 2,
    handler: async (batch) => {
      most = Math.max(most, ++inHand)
      await pause(1_200)
      inHand--
      await store.take(batch)
    },
  })
  await eventually('all of it', () => store.seen.length === 30, 60_000)
  assert.equal(most, 2)
})

test('a member keeps its partitions while one always fails and the others are quiet, if its store answers', async (t) => {
  const topic = await newTopic(2)
  const publish = publisher(t)
  const store = new Store()
  let [failures, left] = [0, 0]
  const log = pino(
    { level: 'warn' },
    { write: (line: string) => void (line.includes('left the group') && left++) },
  )
  const member = consume(t, topic, store, {
    ...{ longestFailingMs: 300, log },
    handler: async (batch) => {
      if (batch.records.some(({ value }) => String(value) === 'poison')) {
        failures++
        throw new Error('poison')
      }
      await store.take(batch)
    },
    ready: async () => undefined,
  })
  const [one = '', other = ''] = await keysOfPartitions(t, 2)
  await publish(topic, ['poison'], one)
  await eventually('some failures', () => failures >= 4, 30_000)
  await publish(topic, ['good'], other)
  await eventually('the good one', () => store.texts.includes('good'))
  assert.ok(member.reading().length > 0)
  assert.equal(left, 0)
})

test('a member that can read no position leaves its partitions to one that can', async (t) => {
  const topic = await newTopic(2)
  const groupId = unique('group')
  const store = new Store()
  const sick = consume(t, topic, store, {
    ...{ groupId, longestFailingMs: 1_000 },
    begin: async () => {
      throw new Error('store is down')
    },
    ready: async () => {
      throw new Error('store is down')
    },
  })
  const well = consume(t, topic, store, { groupId })
  await eventually('the other to read all', () => well.reading().length === 2, 30_000)
  assert.deepEqual(sick.reading(), [])
})

test('stopping waits for the running handler', async (t) => {
  const topic = await newTopic()
  await publisher(t)(topic, ['1'])
  const store = new Store()
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const { promise: allowed, resolve: allow } = Promise.withResolvers<void>()
  const consumption = consume(t, topic, store, {
    handler: async (batch) => {
      begin()
      await allowed
      await store.take(batch)
    },
  })
  await begun
  let stopped = false
  const stopping = consumption.stop().then(() => {
    stopped = true
  })
  await new Promise(setImmediate)
  assert.equal(stopped, false)
  allow()
  await stopping
  assert.deepEqual(store.texts, ['1'])
})

test('a topic that does not exist yet is read as soon as it does', async (t) => {
  const topic = unique('late')
  const store = new Store()
  consume(t, topic, store)
  await makeTopic(topic)
  await publisher(t)(topic, ['1'])
  await eventually('the record', () => store.seen.length >= 1)
  assert.deepEqual(store.texts, ['1'])
})

test('records deleted from Kafka before they were read are skipped, and the rest is read', async (t) => {
  const topic = await newTopic()
  await publisher(t)(topic, numbers(0, 9))
  const admin = bare().admin()
  await admin.connect()
  t.after(() => admin.disconnect())
  await admin.fetchTopicOffsets(topic) // KafkaJS deletes only if it has met the leader before
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '6' }] })
  const store = new Store()
  store.offsets.set('0', 3n)
  consume(t, topic, store)
  await eventually('the rest', () => store.seen.length >= 4)
  assert.deepEqual(store.texts, numbers(6, 9))
})

test('a topic that holds less than was read before is read again from its beginning', async (t) => {
  const topic = await newTopic()
  await publisher(t)(topic, numbers(0, 4))
  const store = new Store()
  store.offsets.set('0', 100n)
  consume(t, topic, store)
  await eventually('all of it', () => store.seen.length >= 5)
  assert.deepEqual(store.remarks, ['log-is-older'])
  assert.deepEqual(store.texts, numbers(0, 4))
})

/** For an epoch before its first one, Kafka answers as if it had lost all that was written under it. */
const LOST_EPOCH = -5

test('if another leader wrote at offsets already read, the consumer reads all that it has', async (t) => {
  const topic = await newTopic()
  await publisher(t)(topic, numbers(0, 9))
  const store = new Store()
  store.offsets.set('0', 5n)
  let looks = 0
  consume(t, topic, store, {
    async begin(at, logOf, known) {
      const offset = store.offsets.get('0') as bigint
      // The log is lost after the first look: only a fetch shows it.
      if (looks++ === 0) return { offset, logId: null, epoch: LOST_EPOCH }
      return store.begin(at, () => logOf(offset === 5n ? LOST_EPOCH : 0), known)
    },
  })
  await eventually('all of it', () => store.seen.length >= 10)
  assert.deepEqual(store.texts, numbers(0, 9))
  assert.deepEqual(store.remarks, ['log-is-older'])
})

test('a record names the epoch of its leader, and that epoch ends where the log does', async (t) => {
  const topic = await newTopic()
  await publisher(t)(topic, numbers(0, 9))
  const store = new Store()
  const epochs = new Set<number | null | undefined>()
  let ends: Promise<bigint | null | undefined> | undefined
  consume(t, topic, store, {
    async begin(at, logOf, known) {
      ends = logOf(0).then(({ epochEnd }) => epochEnd)
      return store.begin(at, logOf, known)
    },
    async handler(batch) {
      for (const { leaderEpoch } of batch.records) epochs.add(leaderEpoch)
      epochs.add(batch.epoch)
      await store.take(batch)
    },
  })
  await eventually('all of it', () => store.seen.length >= 10)
  assert.deepEqual([...epochs], [0])
  assert.equal(await ends, 10n)
})

test('after the store is set back, the consumer reads again from there, whether or not new records arrive', async (t) => {
  const topic = await newTopic()
  const publish = publisher(t)
  await publish(topic, numbers(0, 9))
  const store = new Store()
  const known: (bigint | undefined)[] = []
  consume(t, topic, store, {
    begin: (at, logOf, standing) => {
      known.push(standing?.offset)
      return store.begin(at, logOf, standing)
    },
  })
  await eventually('ten records', () => store.seen.length >= 10)
  store.offsets.set('0', 6n)
  await publish(topic, ['10'])
  await eventually('what the store lost, and what arrived', () => store.offsets.get('0') === 11n)
  assert.deepEqual(store.texts, [...numbers(0, 9), ...numbers(6, 10)])
  store.offsets.set('0', 8n)
  await eventually('what the store lost', () => store.offsets.get('0') === 11n)
  assert.deepEqual(store.texts.slice(15), numbers(8, 10))
  assert.equal(known[0], undefined, 'where it stood before is not known')
  assert.ok(known.includes(11n), 'where it stood when it was set back is known')
})

test('a topic that is deleted and created again during reading is read from its beginning, even if it is longer', async (t) => {
  const topic = await newTopic()
  const publish = publisher(t)
  await publish(topic, numbers(0, 4))
  const store = new Store()
  consume(t, topic, store)
  await eventually('five records', () => store.seen.length >= 5)
  await remakeTopic(topic)
  const again = publisher(t)
  await again(topic, numbers(100, 109))
  await eventually('all of the new topic', () => store.seen.length >= 15)
  assert.deepEqual(store.texts, [...numbers(0, 4), ...numbers(100, 109)])
  assert.deepEqual(store.remarks, ['another-log'])
})

test('aborted transactions are skipped without a gap', async (t) => {
  const topic = await newTopic()
  const producer = bare().producer({
    transactionalId: unique('tx'),
    maxInFlightRequests: 1,
    idempotent: true,
  })
  await producer.connect()
  t.after(() => producer.disconnect())
  const store = new Store()
  const logged: string[] = []
  consume(t, topic, store, { log: pino({ level: 'debug' }, { write: (line) => logged.push(line) }) })
  const send = async (value: string, end: 'commit' | 'abort') => {
    const transaction = await producer.transaction()
    await transaction.send({ topic, messages: [{ key: 'k', value }] })
    await transaction[end]()
  }
  await send('1', 'commit')
  await eventually('the first', () => store.seen.length >= 1)
  await send('aborted', 'abort')
  await send('aborted too', 'abort')
  await send('2', 'commit')
  await eventually('the second', () => store.seen.length >= 2)
  assert.deepEqual(store.texts, ['1', '2'])
  // Two records and their markers (0 to 1, 6 to 7), and two aborted ones with theirs in between.
  assert.equal(store.offsets.get('0'), 8n)
  await send('aborted at last', 'abort')
  await eventually('the place behind what holds no record', () => store.offsets.get('0') === 10n)
  assert.deepEqual(
    [store.texts, store.epochs.map((epoch) => typeof epoch)],
    [['1', '2'], store.epochs.map(() => 'number')],
  )
  assert.ok(!logged.some((line) => line.includes('turned away')), 'the place in the partition was never lost')
})

test('of overlapping transactions, the aborted ones are skipped, whichever ended first', async (t) => {
  const topic = await newTopic()
  const transactions = await Promise.all(
    ['one', 'two'].map(async (name) => {
      const options = { transactionalId: unique(name), maxInFlightRequests: 1, idempotent: true }
      const producer = bare().producer(options)
      await producer.connect()
      t.after(() => producer.disconnect())
      return producer.transaction()
    }),
  )
  const send = (transaction: Transaction | undefined, value: string) =>
    transaction?.send({ topic, messages: [{ key: Buffer.alloc(4), value }] })
  const [one, two] = transactions
  for (const transaction of [one, two, one, two]) await send(transaction, 'aborted')
  await two?.abort()
  await one?.abort()
  await publisher(t)(topic, ['sent'])
  const store = new Store()
  consume(t, topic, store)
  await eventually('the last', () => store.texts.includes('sent'))
  assert.deepEqual(store.texts, ['sent'])
})

test('an open transaction is reported by its offset until it ends', async (t) => {
  const topic = await newTopic(2)
  const [, key] = await keysOfPartitions(t, 2)
  const admin = await connectAdmin(kafka(), silentLogger)
  t.after(() => admin.close())
  await publisher(t)(topic, ['before'], key)
  assert.deepEqual(await admin.heldUp(topic), [])
  const transaction = await openTransaction(t, [topic], key)
  assert.deepEqual(await admin.heldUp(topic), [{ partition: 1, from: 1n, waiting: 1n }])
  const ends = async (isolation?: 'uncommitted') =>
    (await admin.logs(topic, isolation))
      .toSorted((one, other) => one.partition - other.partition)
      .map(({ high }) => high)
  assert.deepEqual(
    [await ends(), await ends('uncommitted')],
    [
      [0n, 1n],
      [0n, 2n],
    ],
  )
  await transaction.abort()
  await eventually('its end', async () => (await admin.heldUp(topic)).length === 0)
  assert.ok(((await admin.longestTransactionMs()) ?? 0) > 0)
})

test('a topic that the broker compresses is read, whichever codec it uses', async (t) => {
  const publish = publisher(t)
  for (const compression of ['gzip', 'snappy', 'lz4', 'zstd']) {
    const topic = await newTopic(1, { 'compression.type': compression })
    const texts = numbers(1, 500).map((number) => `payout ${number} of acme, to be paid by Friday`)
    await publish(topic, texts)
    const store = new Store()
    consume(t, topic, store)
    await eventually(`500 records of ${compression}`, () => store.seen.length >= 500)
    assert.deepEqual(store.texts, texts)
  }
})

test('a batch that unpacks to gigabytes is one unreadable record, and what follows is read', async (t) => {
  const topic = await newTopic(1, { 'max.message.bytes': '10485760' })
  const producer = bare().producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  t.after(() => producer.disconnect())
  const zeros = Buffer.alloc(LIMITS.bytes, 0)
  await producer.send({
    topic,
    compression: CompressionTypes.GZIP,
    messages: [{ value: zeros }, { value: 'a' }],
  })
  await producer.send({ topic, messages: [{ value: 'b' }] })
  const unreadable: (string | undefined)[] = []
  const store = new Store()
  consume(t, topic, store, {
    handler: async (batch) => {
      for (const record of batch.records) unreadable.push(record.unreadable?.reason)
      await store.take(batch)
    },
  })
  await eventually('what follows', () => store.texts.includes('b'))
  assert.deepEqual(unreadable, ['unreadable-batch', undefined])
  assert.deepEqual(
    store.seen.map(({ offset }) => offset),
    [1n, 2n],
  )
})

for (const [what, messages] of [
  ['headers of some MB', [{ value: null, headers: { h: Buffer.alloc(LIMITS.bytes / 2) } }]],
  [
    'thousands of empty headers',
    Array.from({ length: 1_000 }, () => ({
      value: null,
      headers: Object.fromEntries(numbers(1, 100).map((name) => [name, ''])),
    })),
  ],
] as const)
  test(`batches with ${what} are unpacked only as far as the memory limit allows`, async (t) => {
    const topic = await newTopic()
    const producer = bare().producer({ createPartitioner: Partitioners.DefaultPartitioner })
    await producer.connect()
    t.after(() => producer.disconnect())
    for (let i = 0; i < 8; i++)
      await producer.send({ topic, compression: CompressionTypes.GZIP, messages: [...messages] })
    const atOnce: number[] = []
    const store = new Store()
    consume(t, topic, store, {
      handler: async (batch) => {
        atOnce.push(batch.records.length / messages.length)
        await store.take(batch)
      },
    })
    await eventually('all', () => atOnce.reduce((sum, count) => sum + count, 0) >= 8, 60_000)
    assert.ok(Math.max(...atOnce) <= 3, `${Math.max(...atOnce)} at once`)
  })

test('a batch whose records name their own offsets is one unreadable record; no other is skipped or repeated', async (t) => {
  const publish = publisher(t)
  const producer = bare().producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  t.after(() => producer.disconnect())
  for (const offsets of [
    [0, 51],
    [0, 2_000_000_000],
    [-5, -4],
    [0, 0],
    [1, 0],
  ]) {
    const topic = await newTopic()
    const store = new Store()
    const unreadable: (string | undefined)[] = []
    await publish(topic, numbers(0, 4))
    await withOffsets(offsets, () =>
      producer.send({ topic, messages: offsets.map(() => ({ value: 'false' })) }),
    )
    for (const text of numbers(7, 106)) await publish(topic, [text])
    consume(t, topic, store, {
      handler: async (batch) => {
        for (const record of batch.records) if (record.unreadable) unreadable.push(record.unreadable.reason)
        await store.take(batch)
      },
    })
    await eventually('what others published', () => store.texts.at(-1) === '106')
    assert.deepEqual(store.texts, [...numbers(0, 4), 'null', ...numbers(7, 106)])
    assert.deepEqual(unreadable, ['unreadable-batch'])
    assert.deepEqual([store.offsets.get('0'), store.remarks], [107n, []])
  }
})

/** Kafka behind a wire: the broker advertises its own address, so the test routes every connection through the wire. */
async function behindWire(t: TestContext) {
  const [host = '', port] = (kafka().brokers[0] ?? '').split(':')
  const wire = await silentWire({ host, port: Number(port) })
  t.after(() => wire.close())
  const connection: KafkaConnection = {
    ...kafka(),
    requestTimeout: 1_000,
    socketFactory: ({ onConnect }) => net.connect({ host: '127.0.0.1', port: wire.port }, onConnect),
  }
  return { wire, connection }
}

test('a consumer whose connections went silent goes on over new ones, and gives signs of life meanwhile', async (t) => {
  const { wire, connection } = await behindWire(t)
  const topic = await newTopic()
  const publish = publisher(t)
  const store = new Store()
  let signedAt = performance.now()
  let longestMs = 0
  const sign = () => {
    longestMs = Math.max(longestMs, performance.now() - signedAt)
    signedAt = performance.now()
  }
  consume(t, topic, store, { connection, sign })
  await publish(topic, ['1'])
  await eventually('the first', () => store.texts.length === 1)
  wire.silence()
  await publish(topic, ['2'])
  await eventually('the second', () => store.texts.length === 2)
  assert.deepEqual(store.texts, ['1', '2'])
  assert.ok(longestMs < 60_000, `no sign of life for ${longestMs} ms`)
})

test('a Kafka that accepts connections but never answers is no standstill, and is read once it answers', async (t) => {
  const [host = '', port] = (kafka().brokers[0] as string).split(':')
  const topic = await newTopic()
  await publisher(t)(topic, ['1'])
  const unanswered = new Set<net.Socket>()
  let answers = false
  const server = net.createServer((socket) => {
    unanswered.add(socket.on('error', () => undefined))
    if (answers) socket.pipe(net.connect(Number(port), host)).pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const silent = `127.0.0.1:${(server.address() as net.AddressInfo).port}`
  let [signs, starts] = [0, 0]
  const store = new Store()
  consume(t, topic, store, {
    connection: { ...kafka(), brokers: [silent], connectionTimeout: 1_000, requestTimeout: 1_000 },
    sign: () => signs++,
    log: pino({ level: 'warn' }, { write: () => starts++ }),
  })
  await eventually('another sign, or another start', () => signs > 1 || starts > 0)
  assert.equal(starts, 0)
  answers = true
  for (const socket of unanswered) socket.destroy()
  await eventually('what it holds', () => store.texts.length === 1)
})

/** A server that accepts connections and never answers, and how many it has accepted. */
async function silentKafka(t: TestContext) {
  const sockets: net.Socket[] = []
  const server = net.createServer((socket) => void sockets.push(socket.on('error', () => undefined).resume()))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const brokers = [`127.0.0.1:${(server.address() as net.AddressInfo).port}`]
  return { connection: { ...kafka(), brokers }, accepted: () => sockets.length }
}

test('a consumer stops while it connects to a Kafka that accepts connections and never answers', {
  timeout: 60_000,
}, async (t) => {
  const { connection, accepted } = await silentKafka(t)
  const consumer = consume(t, unique('test'), new Store(), { connection })
  await eventually('the first connection', () => accepted() > 0)
  await consumer.stop()
})

test('a publisher’s client tries such a Kafka once, and a publisher closes while it does', async (t) => {
  const { connection, accepted } = await silentKafka(t)
  const impatient = kafkaFor({ ...connection, requestTimeout: 300 }, silentLogger, t.signal, 0).producer()
  await assert.rejects(impatient.connect())
  assert.equal(accepted(), 1)
  const publisher = createPublisher('test', connection, silentLogger)
  const publishing = assert.rejects(publisher.publish([{ topic: 'any', key: 'k', value: Buffer.from('v') }]))
  await eventually('the second connection', () => accepted() === 2)
  await publisher.close()
  await publishing
})

test('a publisher and a ping reach Kafka although the first broker of the list is gone', async () => {
  const gone = await freePort()
  const connection = { ...kafka(), brokers: [`127.0.0.1:${gone}`, ...kafka().brokers] }
  const record = { topic: await newTopic(), key: 'k', value: Buffer.from('v') }
  const publisher = createPublisher('test', connection, silentLogger)
  await publisher.publish([record])
  await publisher.close()
  const { ping, close } = kafkaPing(connection, silentLogger)
  await eventually('an answer', () =>
    ping().then(
      () => true,
      () => false,
    ),
  )
  await close()
})

test('a ping of silent brokers ends, however many there are', async (t) => {
  const { connection } = await silentKafka(t)
  const brokers = Array.from({ length: 5 }, () => connection.brokers[0] as string)
  const { ping, close } = kafkaPing({ ...connection, brokers }, silentLogger)
  await assert.rejects(ping(), /no broker has answered/)
  await close()
})

test('a publisher outlasts a broker that is gone for a moment', async (t) => {
  const [host = '', port] = (kafka().brokers[0] as string).split(':')
  const gone = await freePort()
  const sockets: net.Socket[] = []
  let target = Number(port)
  const connection: KafkaConnection = {
    ...kafka(),
    socketFactory: ({ onConnect }) => {
      const socket = net.connect({ host, port: target }, onConnect)
      sockets.push(socket)
      return socket
    },
  }
  const publisher = createPublisher('test', connection, silentLogger)
  t.after(() => publisher.close())
  const record = { topic: await newTopic(), key: 'k', value: Buffer.from('v') }
  await publisher.publish([record])
  const opened = sockets.length
  target = gone
  for (const socket of sockets) socket.destroy(new Error('the broker is gone'))
  const publishing = publisher.publish([record])
  await eventually('two tries', () => sockets.length >= opened + 2)
  target = Number(port)
  await publishing
})

/** A port at which nobody listens. */
async function freePort(): Promise<number> {
  const server = net.createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as net.AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

test('a ping fails while its connection is silent, and the next one succeeds', async (t) => {
  const { wire, connection } = await behindWire(t)
  const { ping, close } = kafkaPing(connection, silentLogger)
  t.after(close)
  await ping()
  wire.silence()
  await assert.rejects(ping())
  await ping()
})

test('a missing topic is logged once, retried with growing pauses, and never created', async (t) => {
  const topic = unique('test')
  const lines: { level: number; retryInMs?: number }[] = []
  const log = pino({ level: 'debug' }, { write: (line) => void lines.push(JSON.parse(line)) })
  consume(t, topic, new Store(), { log })
  const lost = () => lines.filter(({ retryInMs }) => retryInMs !== undefined)
  await eventually('a third try', () => lost().length >= 3)
  assert.deepEqual(
    lost()
      .slice(0, 3)
      .map(({ level, retryInMs }) => [level, retryInMs]),
    [
      [pino.levels.values.warn, 250],
      [pino.levels.values.debug, 500],
      [pino.levels.values.debug, 1_000],
    ],
  )
  const admin = await connectAdmin(kafka(), silentLogger)
  t.after(() => admin.close())
  assert.deepEqual(await admin.describeTopics([topic]), [])
})

test('a batch that takes too long stops the signs of life, although Kafka answers, until it is done', async (t) => {
  const topic = await newTopic()
  const { promise: through, resolve: goOn } = Promise.withResolvers<void>()
  t.after(() => goOn())
  let begun = 0
  let signs = 0
  consume(t, topic, new Store(), {
    longestInHandMs: 1_000,
    sign: () => signs++,
    handler: async () => {
      begun = performance.now()
      await through
    },
  })
  await publisher(t)(topic, ['a'])
  await eventually(
    'the batch to be in hand for too long',
    () => begun > 0 && performance.now() > begun + 1_200,
  )
  const before = signs
  // Longer than a heartbeat to Kafka and its answer take.
  await new Promise((resolve) => setTimeout(resolve, 5_000))
  assert.equal(signs, before)
  goOn()
  await eventually('signs again', () => signs > before)
})

test('a stopped consumer has no connection, whatever requests to Kafka were pending', async (t) => {
  const topic = await newTopic()
  const store = new Store()
  const opened: net.Socket[] = []
  const socketFactory: KafkaConnection['socketFactory'] = ({ host, port, onConnect }) => {
    const socket = net.connect({ host, port }, onConnect)
    opened.push(socket)
    return socket
  }
  const asked = Promise.withResolvers<void>()
  const stopping = Promise.withResolvers<void>()
  const connection = { ...kafka(), socketFactory }
  const consumption = consume(t, topic, store, {
    connection,
    async begin(at, logOf, known) {
      asked.resolve()
      await stopping.promise
      return store.begin(at, logOf, known)
    },
  })
  await asked.promise
  const stopped = consumption.stop()
  await eventually('the consumer to leave', () => opened.every((socket) => socket.destroyed))
  stopping.resolve()
  await stopped
  await eventually('what was opened since to be closed', () => opened.every((socket) => socket.destroyed))
})
