import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import pino from 'pino'
import { testLedger } from '../../test/ledger.ts'
import { storeOutbox } from '../ledger/ledger.ts'
import { type OutboxRow, SHARDS, shardOf } from '../ledger/messages.ts'
import { kafka, newTopic } from '../platform/kafka/kafka.fixture.ts'
import { createPublisher } from '../platform/kafka/producer.ts'
import { readTopic } from '../platform/kafka/read-topic.ts'
import type { OutgoingRecord } from '../platform/kafka/records.ts'
import { silentLogger } from '../platform/log.ts'
import { Metrics } from '../platform/metrics.ts'
import { type Database, sql, type Transaction } from '../platform/postgres.ts'
import { Relay } from './relay.ts'

const lockVersion = sql<{ key: string }, { version: number }>`
  update versions set version = version + 1 where key = ${'key'} returning version`
const waiting = sql<object, { count: bigint }>`select count(*) as count from outbox`
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

const told = (log = silentLogger) => ({
  published: new Metrics().counter('published_total', 'test', ['topic']),
  refused: new Metrics().counter('refused_total', 'test', ['topic', 'reason']),
  log,
})

function relayOf(db: Database, publish: (records: readonly OutgoingRecord[]) => Promise<void>): Relay {
  return new Relay({ db, publish, owner: randomUUID(), shards: SHARDS, ...told() })
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

test('with 8 writers that commit out of order and a relay that freezes, every message comes, each key in order', async (t) => {
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
          // Locked in the order of the keys, yet xids are given out in any order, and so are commits.
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

  assert.equal((await db.run(waiting, {}))[0]?.count, 0n)
  await assertAllInOrder(t, db, records)
})

test('a publish that fails loses nothing: the same messages come with the next turn, under the same event ids', async (t) => {
  const { ledger } = await testLedger(t)
  await versionedKeys(ledger.db)
  await ledger.db.transaction('test', (tx) => write(tx, pick(5)))
  const sent: string[][] = []
  let broken = true
  const relay = relayOf(ledger.db, async (batch) => {
    sent.push(batch.map(({ headers }) => String(headers?.ce_id)).sort())
    if (broken) throw new Error('broker is down')
  })
  await assert.rejects(relay.turn(0), /broker is down/)
  broken = false
  await relay.turn(0)
  assert.equal(sent[0]?.length, 5)
  assert.deepEqual(sent[1], sent[0])
  assert.equal((await ledger.db.run(waiting, {}))[0]?.count, 0n)
})

const aside = sql<object, { key: string; reason: string }>`
  select key, reason from outbox_refused order by position`

const message = (topic: string, key: string, value: Buffer): OutboxRow => ({
  ...{ shard: shardOf(key), topic, key, value, eventId: randomUUID() },
  ...{ type: 'test', headers: null, about: null },
})

test('a message that Kafka refuses is put aside and told, and stops neither its neighbours nor those behind it', async (t) => {
  const { ledger } = await testLedger(t)
  const { db } = ledger
  const topic = await newTopic(2, { 'max.message.bytes': '4000' })
  const publisher = createPublisher('test', kafka(), silentLogger)
  t.after(() => publisher.close())
  const lines: string[] = []
  const log = pino({ level: 'error' }, { write: (line) => void lines.push(line) })
  const relay = new Relay({
    db,
    publish: publisher.publish,
    owner: randomUUID(),
    shards: SHARDS,
    ...told(log),
  })

  const large = Buffer.alloc(9_000, 'secret')
  const rows = KEYS.flatMap((key, i) => [
    message(topic, key, Buffer.from('1')),
    message(topic, key, i === 7 || i === 30 ? large : Buffer.from('2')),
    message(topic, key, Buffer.from('3')),
  ])
  await db.transaction('test', (tx) => storeOutbox(tx, rows))
  await relay.turn(0)

  assert.equal((await db.run(waiting, {}))[0]?.count, 0n)
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
