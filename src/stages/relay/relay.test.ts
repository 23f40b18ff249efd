import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import pino from 'pino'
import { testLedger } from '../../../test/ledger.ts'
import { outboxMessages } from '../../../test/outbox-messages.ts'
import { storeOutbox } from '../../ledger/ledger.ts'
import { type OutboxRow, SHARDS, shardOf } from '../../messages/messages.ts'
import { kafka, makeTopic, newTopic, unique } from '../../platform/kafka/kafka.fixture.ts'
import { createPublisher, Publishers, RefusedByKafka } from '../../platform/kafka/producer.ts'
import { readTopic } from '../../platform/kafka/read-topic.ts'
import type { OutgoingRecord } from '../../platform/kafka/records.ts'
import { turningWire } from '../../platform/kafka/turned-bit.fixture.ts'
import { silentLogger } from '../../platform/log.ts'
import { Metrics } from '../../platform/metrics.ts'
import {
  connectDatabase,
  type Database,
  sql,
  type Transaction,
  withSession,
} from '../../platform/postgres/postgres.ts'
import { eventually } from '../../platform/running/eventually.fixture.ts'
import { Heartbeats } from '../../platform/running/heartbeats.ts'
import { Relay } from './relay.ts'

const lockVersion = sql<{ key: string }, { version: number }>`
  update versions set version = version + 1 where key = ${'key'} returning version`
/** It reads no contents, which may be large. */
const waiting = sql<object, { count: bigint }>`
  select coalesce(sum(cardinality(keys)), 0)::bigint as count from outbox`
const endLeases = sql<object>`update relay_shards set lease_until = '-infinity'`

const KEYS = Array.from({ length: 40 }, (_, i) => `acme:p${i}`)

async function versionedKeys(db: Database): Promise<void> {
  await db.run(
    sql<object>`create table versions (key text primary key, version integer not null default 0)`,
    {},
  )
  await db.run(sql<{ keys: string[] }>`insert into versions select unnest(${'keys'}::text[])`, { keys: KEYS })
}

/** Writes the next version of some keys, as a stage does: lock the row, then append. */
async function write(tx: Transaction, keys: readonly string[]): Promise<void> {
  for (const key of keys) {
    const [row] = await tx.run(lockVersion, { key })
    const value = Buffer.from(String(row?.version))
    await storeOutbox(tx, [
      {
        shard: shardOf(key),
        topic: 'events',
        key,
        eventId: randomUUID(),
        type: 'test',
        value,
        headers: null,
        about: null,
      },
    ])
  }
}

const telemetry = (log = silentLogger) => ({
  published: new Metrics().counter('published_total', 'test', ['topic']),
  refused: new Metrics().counter('refused_total', 'test', ['topic', 'reason']),
  heartbeats: new Heartbeats(),
  log,
})

function relayOf(
  db: Database,
  publish: (records: readonly OutgoingRecord[]) => Promise<void>,
  log = silentLogger,
): Relay {
  return new Relay({
    db,
    ping: () => publish([]),
    publisherOf: () => ({ publish }),
    owner: randomUUID(),
    shards: SHARDS,
    ...telemetry(log),
  })
}

/** A ledger with the keys, and a relay whose Kafka is `records`. */
async function relaying(t: TestContext) {
  const { db } = (await testLedger(t)).ledger
  await versionedKeys(db)
  const records: OutgoingRecord[] = []
  return { db, records, relay: relayOf(db, async (batch) => void records.push(...batch)) }
}

const pick = (count: number): string[] => [...KEYS].sort(() => Math.random() - 0.5).slice(0, count)

/** The versions of each key in the order of their first appearance. */
function firstAppearances(records: readonly OutgoingRecord[]): Map<string, number[]> {
  const seen = new Map<string, number[]>(KEYS.map((key) => [key, []]))
  for (const { key, value } of records) {
    const versions = seen.get(String(key)) as number[]
    const version = Number(value)
    if (!versions.includes(version)) versions.push(version)
  }
  return seen
}

async function assertAllInOrder(
  t: TestContext,
  db: Database,
  records: readonly OutgoingRecord[],
): Promise<void> {
  const rows = await db.run(
    sql<object, { key: string; version: number }>`select key, version from versions`,
    {},
  )
  const seen = firstAppearances(records)
  for (const { key, version } of rows) {
    assert.deepEqual(
      seen.get(key),
      Array.from({ length: version }, (_, i) => i + 1),
      key,
    )
  }
  t.diagnostic(
    `${records.length} records published for ${rows.reduce((all, { version }) => all + version, 0)} written`,
  )
}

test('with 8 writers that commit out of order and a relay that freezes, every message is published, each key in order', async (t) => {
  const { ledger } = await testLedger(t)
  const { db } = ledger
  await versionedKeys(db)
  const records: OutgoingRecord[] = []
  const publish = async (batch: readonly OutgoingRecord[]) => {
    records.push(...batch)
  }

  // A first relay takes every shard, reads a page and freezes before it can publish.
  await db.transaction('test', (tx) => write(tx, KEYS))
  let thaw: () => void = () => undefined
  const frozen = new Promise<void>((resolve) => {
    thaw = resolve
  })
  let froze: () => void = () => undefined
  const reading = new Promise<void>((resolve) => {
    froze = resolve
  })
  const freezing = relayOf(db, async (batch) => {
    froze()
    await frozen
    await publish(batch)
  })
  const late = freezing.turn(0)
  await reading
  await db.run(endLeases, {})

  let writing = true
  const writers = Array.from({ length: 8 }, async () => {
    for (let i = 0; i < 40; i++) {
      const failed = Math.random() < 0.1
      await db
        .transaction('test', async (tx) => {
          // Locks follow the order of the keys, but xids and commits come in any order.
          await write(tx, pick(4).sort())
          if (failed) throw new Error('rolled back')
        })
        .catch((error: Error) => {
          if (error.message !== 'rolled back') throw error
        })
    }
  })
  const relays = [relayOf(db, publish), relayOf(db, publish)].map(async (relay) => {
    for (;;) {
      const allWritten = !writing
      const wait = await relay.turn(performance.now())
      if (wait > 0 && allWritten) return
    }
  })
  await Promise.all(writers)
  writing = false
  await Promise.all(relays)
  thaw()
  await late
  await freezing.leave()

  assert.equal((await db.run(waiting, {}))[0]?.count, 0n)
  await assertAllInOrder(t, db, records)
})

test('a publish that fails loses nothing: the next turn publishes the same messages under the same event ids', async (t) => {
  const { ledger } = await testLedger(t)
  await versionedKeys(ledger.db)
  await ledger.db.transaction('test', (tx) => write(tx, pick(5)))
  const sent: string[][] = []
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line) => void lines.push(line) })
  let broken = true
  const relay = relayOf(
    ledger.db,
    async (batch) => {
      sent.push(batch.map(({ headers }) => String(headers?.ce_id)).sort())
      if (broken) throw new Error('broker is down')
    },
    log,
  )
  await relay.turn(performance.now())
  broken = false
  await untilPublished(ledger.db, relay)
  assert.equal(sent[0]?.length, 5)
  assert.deepEqual(sent[1], sent[0])
  const logged = lines.map((line) => JSON.parse(line))
  assert.deepEqual(
    logged.map(({ topic, err, failures }) => [topic, err?.message, failures]),
    [
      ['events', 'broker is down', undefined],
      ['events', undefined, 1],
    ],
  )
})

/** How often a relay renews its shards and moves its marks. */
const RENEW_MS = 3_000
/** How long a relay may only fail. */
const LONGEST_FAILING_MS = 15_000
const freeShardsSince = sql<{ ms: number }>`
  update relay_shards set lease_until = now() - ${'ms'} * interval '1 millisecond'`

const isOver = async () => {
  throw new Error('connect ETIMEDOUT')
}

test('a relay that only fails leaves its shards to one that publishes', async (t) => {
  const { db, records, relay: well } = await relaying(t)
  await db.transaction('test', (tx) => write(tx, KEYS))
  const deaf = relayOf(db, isOver)
  await deaf.turn(0)
  await well.turn(0)
  await deaf.turn(LONGEST_FAILING_MS)
  assert.equal(records.length, 0)
  await deaf.turn(LONGEST_FAILING_MS + 1)
  await deaf.turn(LONGEST_FAILING_MS + 3 * RENEW_MS + 1)
  await well.turn(RENEW_MS)
  assert.equal((await db.run(waiting, {}))[0]?.count, 0n)
  await assertAllInOrder(t, db, records)
})

test('a relay that only fails takes its shards again if no other does, and publishes once Kafka is back', async (t) => {
  const { db } = await relaying(t)
  await db.transaction('test', (tx) => write(tx, KEYS))
  const records: OutgoingRecord[] = []
  let publish: (batch: readonly OutgoingRecord[]) => Promise<void> = isOver
  const relay = relayOf(db, (batch) => publish(batch))
  await relay.turn(0)
  await relay.turn(LONGEST_FAILING_MS + 1)
  publish = async (batch) => void records.push(...batch)
  await db.run(freeShardsSince, { ms: 2 * RENEW_MS })
  await eventually('the topic to be tried again', async () => {
    await relay.turn(LONGEST_FAILING_MS + 3 * RENEW_MS + 1)
    return records.length > 0
  })
  await assertAllInOrder(t, db, records)
})

test('after the database was away, a relay publishes at once', async (t) => {
  const { db } = await relaying(t)
  const records: OutgoingRecord[] = []
  let isAway = false
  const run: Database['run'] = async (statement, parameters) => {
    if (isAway) throw new Error('connect ECONNREFUSED')
    return db.run(statement, parameters)
  }
  const write: Database['write'] = async (name, statement, parameters) => {
    if (isAway) throw new Error('connect ECONNREFUSED')
    return db.write(name, statement, parameters)
  }
  const relay = relayOf({ ...db, run, write }, async (batch) => void records.push(...batch))
  await relay.turn(0)
  isAway = true
  for (let now = 1_000; now < 2 * LONGEST_FAILING_MS; now += 1_000) await assert.rejects(relay.turn(now))
  isAway = false
  await db.transaction('test', (tx) => storeOutbox(tx, [message('events', 'acme:p0', Buffer.from('1'))]))
  await relay.turn(2 * LONGEST_FAILING_MS)
  assert.equal(records.length, 1)
})

test('a topic that fails while Kafka answers takes no shard from its relay, however long nothing else is published', async (t) => {
  const { db } = await relaying(t)
  const relay = new Relay({
    ...{ db, ping: async () => undefined, owner: randomUUID(), shards: SHARDS, ...telemetry() },
    publisherOf: (topic) => ({ publish: topic === 'missing' ? isOver : async () => undefined }),
  })
  const put = (topic: string) =>
    db.transaction('test', (tx) => storeOutbox(tx, [message(topic, 'acme:p0', Buffer.from('1'))]))
  await put('missing')
  for (let turn = 0; turn < 4; turn++) await relay.turn(turn * LONGEST_FAILING_MS)
  await put('there')
  await relay.turn(4 * LONGEST_FAILING_MS)
  assert.equal((await db.run(countOf, { topic: 'there' }))[0]?.count, 0n)
})

async function untilPublished(db: Database, relay: Relay): Promise<void> {
  await eventually('the outbox to be empty', async () => {
    await relay.turn(performance.now())
    return (await db.run(waiting, {}))[0]?.count === 0n
  })
}

const aside = sql<object, { key: string; reason: string }>`
  select key, reason from outbox_refused order by length(key), key`

const message = (topic: string, key: string, value: Buffer): OutboxRow => ({
  ...{ shard: shardOf(key), topic, key, value, eventId: randomUUID() },
  ...{ type: 'test', headers: null, about: null },
})

test('a message that Kafka refuses is put aside and logged, and stops neither its neighbours nor later ones', async (t) => {
  const { ledger } = await testLedger(t)
  const { db } = ledger
  const topic = await newTopic(2, { 'max.message.bytes': '4000' })
  const publisher = createPublisher('test', kafka(), silentLogger)
  t.after(() => publisher.close())
  const lines: string[] = []
  const log = pino({ level: 'error' }, { write: (line) => void lines.push(line) })
  const relay = new Relay({
    db,
    ping: async () => undefined,
    publisherOf: () => publisher,
    owner: randomUUID(),
    shards: SHARDS,
    ...telemetry(log),
  })

  const large = Buffer.alloc(9_000, 'secret')
  const rows = KEYS.flatMap((key, i) => [
    message(topic, key, Buffer.from('1')),
    message(topic, key, i === 7 || i === 30 ? large : Buffer.from('2')),
    message(topic, key, Buffer.from('3')),
  ])
  await db.transaction('test', (tx) => storeOutbox(tx, rows))
  await untilPublished(db, relay)

  assert.deepEqual(await db.run(aside, {}), [
    { key: 'acme:p7', reason: 'MESSAGE_TOO_LARGE' },
    { key: 'acme:p30', reason: 'MESSAGE_TOO_LARGE' },
  ])
  const seen: OutgoingRecord[] = []
  await readTopic({
    connection: kafka(),
    topic,
    onRecord: ({ key, value }) => void seen.push({ topic, key, value }),
    log: silentLogger,
  })
  for (const [key, versions] of firstAppearances(seen)) {
    assert.deepEqual(versions, key === 'acme:p7' || key === 'acme:p30' ? [1, 3] : [1, 2, 3], key)
  }
  assert.equal(lines.length, 2)
  for (const line of lines) {
    const { eventId, topic: on, reason, bytes } = JSON.parse(line)
    assert.ok(rows.some((row) => row.eventId === eventId && row.value === large))
    assert.deepEqual([on, reason, bytes], [topic, 'MESSAGE_TOO_LARGE', 9_000])
    assert.doesNotMatch(line, /secret/)
  }
  await relay.turn(0)
  assert.equal(lines.length, 2)
})

test('a bit that turns on the way to Kafka puts no message aside: the message is sent again', async (t) => {
  const { db } = (await testLedger(t)).ledger
  const topic = await newTopic()
  const { connection, turned } = await turningWire(t, { content: 'paid 5000', way: 'to Kafka', times: 1 })
  const publisher = createPublisher('test', connection, silentLogger)
  t.after(() => publisher.close())
  const relay = relayOf(db, (records) => publisher.publish(records))
  const row = message(topic, 'acme:p1', Buffer.from('paid 5000'))
  await db.transaction('test', (tx) => storeOutbox(tx, [row]))
  await untilPublished(db, relay)
  assert.equal(turned(), 1)
  assert.deepEqual(await db.run(aside, {}), [])
  const seen: string[] = []
  const onRecord = ({ value }: { value: Buffer | null }) => void seen.push(String(value))
  await readTopic({ connection: kafka(), topic, onRecord, log: silentLogger })
  assert.deepEqual(seen, ['paid 5000'])
})

test('messages of one request that Kafka refuses are put aside in one statement, however many they are', async (t) => {
  const { ledger } = await testLedger(t)
  const rows = KEYS.flatMap((key) => [1, 2, 3].map((n) => message('refused', key, Buffer.from(String(n)))))
  await ledger.db.transaction('test', (tx) => storeOutbox(tx, rows))
  let statements = 0
  const db: Database = {
    ...ledger.db,
    write: (name, ...rest) => {
      if (name === 'set refused aside') statements++
      return ledger.db.write(name, ...rest)
    },
  }
  const relay = relayOf(db, async (records) => {
    throw new RefusedByKafka(records.map((record) => ({ record, reason: 'MESSAGE_TOO_LARGE' })))
  })
  await relay.turn(0)
  assert.equal(statements, 1)
  assert.equal((await ledger.db.run(aside, {})).length, rows.length)
})

const DEAD_LETTER = 336_000

test('large messages leave in turns of some MB, each request is deleted once acknowledged, and no other topic waits', async (t) => {
  const { ledger } = await testLedger(t)
  const { db } = ledger
  const large = Buffer.alloc(DEAD_LETTER, 'x')
  for (let i = 0; i < 200; i += 40) {
    const rows = Array.from({ length: 40 }, (_, n) => message('dead letters', `acme:${i + n}`, large))
    await db.transaction('test', (tx) => storeOutbox(tx, rows))
  }
  const results = KEYS.map((key) => message('results', key, Buffer.from('1')))
  await db.transaction('test', (tx) => storeOutbox(tx, results))

  const publishes: { topic: string; bytes: number; left: bigint }[] = []
  let acknowledge: () => void = () => undefined
  const acknowledged = new Promise<void>((resolve) => {
    acknowledge = resolve
  })
  const relay = relayOf(db, async (batch) => {
    const [{ count } = { count: 0n }] = await db.run(waiting, {})
    const bytes = batch.reduce((sum, { value }) => sum + (value?.length ?? 0), 0)
    const topic = String(batch[0]?.topic)
    publishes.push({ topic, bytes, left: count })
    if (topic === 'dead letters' && publishes.filter((one) => one.topic === topic).length === 3)
      await acknowledged
  })
  const left = (count: bigint) => async () => (await db.run(waiting, {}))[0]?.count === count
  await relay.turn(0)
  // A turn waits only a moment for what takes longer.
  await eventually('two requests of two letters, and the results, leave while the third waits', left(196n))
  await db.transaction('test', (tx) => storeOutbox(tx, [message('results', 'acme:late', Buffer.from('2'))]))
  await relay.turn(0)
  await eventually('a later result leaves, too', left(196n))
  acknowledge()
  await untilPublished(db, relay)

  const letters = publishes.filter(({ topic }) => topic === 'dead letters')
  for (const { bytes } of letters) assert.ok(bytes <= 768 * 1024, String(bytes))
  assert.equal(letters.length, 100)
})

const turnBytes = sql<
  object,
  { bytes: number }
>`select coalesce(sum(octet_length(value)), 0)::int as bytes from ${outboxMessages}`

test('a turn reads no more than some MB, with a part from every shard', async (t) => {
  const { ledger } = await testLedger(t)
  const { db } = ledger
  const large = Buffer.alloc(DEAD_LETTER, 'x')
  const rows = Array.from({ length: 100 }, (_, n) => message('dead letters', `acme:${n}`, large))
  await db.transaction('test', (tx) => storeOutbox(tx, rows))
  const moved = new Map<string, number>()
  const relay = relayOf(db, async (batch) => {
    for (const { key } of batch) {
      const shard = String(shardOf(String(key)))
      moved.set(shard, (moved.get(shard) ?? 0) + 1)
    }
  })
  await relay.turn(0)
  await relay.leave()
  assert.deepEqual([...moved.values()], Array(SHARDS).fill(2))
  assert.equal((await db.run(turnBytes, {}))[0]?.bytes, (100 - 2 * SHARDS) * DEAD_LETTER)
})

test('a missing topic waits by itself: others are published, and it is once it exists, each key in order', async (t) => {
  const { ledger } = await testLedger(t)
  const { db } = ledger
  const there = await newTopic()
  const missing = unique('missing')
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line) => void lines.push(line) })
  const publishers = new Publishers(() => createPublisher('test', kafka(), silentLogger))
  t.after(() => publishers.close())
  const relay = new Relay({
    ...{ db, ping: async () => undefined, owner: randomUUID(), shards: SHARDS },
    publisherOf: (topic) => publishers.of(topic),
    ...telemetry(log),
  })
  const rowsOf = (topic: string, version: string) =>
    KEYS.map((key) => message(topic, key, Buffer.from(version)))
  const isPublished = async () => (await db.run(countOf, { topic: there }))[0]?.count === 0n
  for (const version of ['1', '2', '3']) {
    const rows = [...rowsOf(missing, version), ...rowsOf(there, version)]
    await db.transaction('test', (tx) => storeOutbox(tx, rows))
    await eventually('the others to be published', async () => {
      await relay.turn(performance.now())
      return isPublished()
    })
  }
  assert.equal((await db.run(countOf, { topic: missing }))[0]?.count, BigInt(3 * KEYS.length))
  await eventually('the topic to be named', () => lines.length > 0)
  await makeTopic(missing)
  await untilPublished(db, relay)

  for (const topic of [missing, there]) {
    const seen: OutgoingRecord[] = []
    const onRecord = ({ key, value }: Pick<OutgoingRecord, 'key' | 'value'>) =>
      void seen.push({ topic, key, value })
    await readTopic({ connection: kafka(), topic, onRecord, log: silentLogger })
    for (const [key, versions] of firstAppearances(seen)) assert.deepEqual(versions, [1, 2, 3], key)
  }
  for (const line of lines) assert.equal(JSON.parse(line).topic, missing)
})

const countOf = sql<{ topic: string }, { count: bigint }>`
  select coalesce(sum(cardinality(keys)), 0)::bigint as count from outbox where topic = ${'topic'}`

const marks = sql<object, { below: bigint; position: bigint }>`
  select min(done_below) as below, (select last_value from outbox_position_seq) as position from relay_shards`

test('a relay does not scan again rows that were deleted while a snapshot is held', async (t) => {
  const { ledger, config } = await testLedger(t)
  const { db } = ledger
  await versionedKeys(db)
  const relay = relayOf(db, async () => undefined)
  await withSession(config.databaseUrl, async (session) => {
    await session.query('begin isolation level repeatable read; select 1')
    for (let turn = 0; turn < 4; turn++) {
      await db.transaction('test', (tx) => write(tx, KEYS))
      await relay.turn(turn * RENEW_MS)
    }
    await relay.turn(4 * RENEW_MS)
    const [{ below, position }] = (await db.run(marks, {})) as [{ below: bigint; position: bigint }]
    assert.ok(below > position - 2n * BigInt(KEYS.length), `${below} of ${position}`)
    await session.query('rollback')
  })
})

test('a message committed long after it took its position is published, however far the relay has come', async (t) => {
  const { db, records, relay } = await relaying(t)
  const [late, ...others] = KEYS as [string, ...string[]]
  let turn = 0
  await db.transaction('test', async (tx) => {
    await write(tx, [late])
    for (; turn < 6; turn++) {
      await db.transaction('test', (tx) => write(tx, others))
      await relay.turn(turn * RENEW_MS)
    }
  })
  for (; turn < 12; turn++) {
    await db.transaction('test', (tx) => write(tx, others))
    await relay.turn(turn * RENEW_MS)
  }
  assert.equal((await db.run(waiting, {}))[0]?.count, 0n)
  await assertAllInOrder(t, db, records)
})

test('a role with rights from before the marks, which may not read the last position, relays all the same', async (t) => {
  const { ledger, config } = await testLedger(t)
  await versionedKeys(ledger.db)
  const role = `runner_${randomUUID().replaceAll('-', '')}`
  await withSession(config.databaseUrl, (session) =>
    session.query(`create role ${role} login password 'secret';
      grant select, insert, update, delete on all tables in schema public to ${role}`),
  )
  const url = Object.assign(new URL(config.databaseUrl), { username: role, password: 'secret' }).href
  const db = connectDatabase({ url, connections: 1, applicationName: 'test' })
  t.after(() => db.close())
  const records: OutgoingRecord[] = []
  const relay = relayOf(db, async (batch) => void records.push(...batch))
  for (let turn = 0; turn < 4; turn++) {
    await ledger.db.transaction('test', (tx) => write(tx, KEYS))
    await relay.turn(turn * RENEW_MS)
  }
  await assertAllInOrder(t, ledger.db, records)
})

test('a message committed late is published even if nothing was committed between its position and the mark', async (t) => {
  const { db, records, relay } = await relaying(t)
  let turn = 0
  for (; turn < 3; turn++) await relay.turn(turn * RENEW_MS)
  await db.transaction('test', async (tx) => {
    await write(tx, KEYS)
    for (; turn < 6; turn++) await relay.turn(turn * RENEW_MS)
  })
  for (; turn < 9; turn++) await relay.turn(turn * RENEW_MS)
  assert.equal((await db.run(waiting, {}))[0]?.count, 0n)
  await assertAllInOrder(t, db, records)
})

const beUnderWay = sql<object>`select pg_current_xact_id()`
const beginPositionsAnew = sql<object>`alter sequence outbox_position_seq restart`

for (const [copied, underWay] of [
  ['', false],
  [' while a transaction was under way', true],
] as const)
  test(`if positions start again, as in a copy of the tables without their sequences${copied}, all is published`, async (t) => {
    const { db, records, relay } = await relaying(t)
    const other = Promise.withResolvers<void>()
    let turn = 0
    const writeAndTurn = async () => {
      await db.transaction('test', (tx) => write(tx, KEYS))
      await relay.turn(turn++ * RENEW_MS)
    }
    await writeAndTurn()
    await writeAndTurn()
    const elsewhere =
      underWay &&
      db.transaction('test', async (tx) => {
        await tx.run(beUnderWay, {})
        await other.promise
      })
    await writeAndTurn()
    await writeAndTurn()
    await db.run(beginPositionsAnew, {})
    await relay.turn(turn++ * RENEW_MS)
    other.resolve()
    await elsewhere
    for (const end = turn + 3; turn < end; ) await writeAndTurn()
    assert.equal((await db.run(waiting, {}))[0]?.count, 0n)
    await assertAllInOrder(t, db, records)
  })

test('if positions start again, and are past the marks before the next relay begins, all is published', async (t) => {
  const { db, records, relay } = await relaying(t)
  const writeAll = () => db.transaction('test', (tx) => write(tx, KEYS))
  for (let turn = 0; turn < 4; turn++) {
    await writeAll()
    await relay.turn(turn * RENEW_MS)
  }
  await relay.leave()
  await db.run(beginPositionsAnew, {})
  for (let i = 0; i < 6; i++) await writeAll()
  const next = relayOf(db, async (batch) => void records.push(...batch))
  for (let turn = 0; turn < 4; turn++) await next.turn(turn * RENEW_MS)
  assert.equal((await db.run(waiting, {}))[0]?.count, 0n)
  await assertAllInOrder(t, db, records)
})

const leaveAnHourAhead = sql<object>`
  update relay_shards set owner = 'crashed', lease_until = now() + interval '1 hour'`

test('a lease from a clock that was ahead, and was set back since, holds nothing up', async (t) => {
  const { ledger } = await testLedger(t)
  const { db } = ledger
  await relayOf(db, async () => undefined).turn(0)
  await db.run(leaveAnHourAhead, {})
  await db.transaction('test', (tx) => storeOutbox(tx, [message('events', 'acme:p0', Buffer.from('1'))]))
  await relayOf(db, async () => undefined).turn(0)
  assert.equal((await db.run(waiting, {}))[0]?.count, 0n)
})

const loseAll = sql<object, { position: bigint }>`delete from outbox returning position`
const goOnFrom = sql<{ position: bigint }>`
  select setval(pg_get_serial_sequence('outbox', 'position'), ${'position'}, false)`

for (const [what, isRefused] of [
  ['published', false],
  ['refused', true],
] as const)
  test(`if another server took over meanwhile and gave out the same positions, messages ${what} from the former one delete none of its own`, async (t) => {
    const { ledger } = await testLedger(t)
    const { db } = ledger
    const rowsOf = (version: string) => KEYS.map((key) => message('events', key, Buffer.from(version)))
    await db.transaction('test', (tx) => storeOutbox(tx, rowsOf('lost')))
    const records: OutgoingRecord[] = []
    const relay = relayOf(db, async (batch) => {
      if (records.length === 0) {
        const lost = await db.run(loseAll, {})
        await db.run(goOnFrom, { position: lost.map(({ position }) => position).reduce(least) })
        await db.transaction('test', (tx) => storeOutbox(tx, rowsOf('kept')))
      }
      records.push(...batch)
      if (isRefused && String(batch[0]?.value) === 'lost')
        throw new RefusedByKafka(batch.map((record) => ({ record, reason: 'MESSAGE_TOO_LARGE' })))
    })
    await untilPublished(db, relay)
    const kept = records.filter(({ value }) => String(value) === 'kept').map(({ key }) => String(key))
    assert.deepEqual(kept.sort(), [...KEYS].sort())
    assert.deepEqual(await db.run(aside, {}), [])
  })

test('if another server took over meanwhile, and its row begins with the same messages, it publishes all of that row', async (t) => {
  const { ledger } = await testLedger(t)
  const { db } = ledger
  const same = ['1', '2'].map((version) => message('events', 'acme:p0', Buffer.from(version)))
  const more = message('events', 'acme:p0', Buffer.from('3'))
  await db.transaction('test', (tx) => storeOutbox(tx, same))
  const published: string[] = []
  const relay = relayOf(db, async (batch) => {
    if (published.length === 0) {
      const [lost] = await db.run(loseAll, {})
      await db.run(goOnFrom, { position: lost?.position ?? assert.fail() })
      await db.transaction('test', (tx) => storeOutbox(tx, [...same, more]))
    }
    published.push(...batch.map(({ value }) => String(value)))
  })
  await untilPublished(db, relay)
  assert.deepEqual(published, ['1', '2', '1', '2', '3'])
})

const least = (one: bigint, other: bigint): bigint => (one < other ? one : other)
