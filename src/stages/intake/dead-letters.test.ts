import assert from 'node:assert/strict'
import { createHash, createSecretKey, randomBytes, randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { standAt, testLedger } from '../../../test/ledger.ts'
import { outboxMessages } from '../../../test/outbox-messages.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { paise } from '../../domain/money.ts'
import { SHARDS } from '../../messages/messages.ts'
import { topicNames } from '../../messages/topics.ts'
import { kafka, makeTopic, publisher as publisherOf } from '../../platform/kafka/kafka.fixture.ts'
import { createPublisher } from '../../platform/kafka/producer.ts'
import { readTopic } from '../../platform/kafka/read-topic.ts'
import type { IncomingRecord } from '../../platform/kafka/records.ts'
import { silentLogger } from '../../platform/log.ts'
import { Metrics } from '../../platform/metrics.ts'
import { type Database, sql } from '../../platform/postgres/postgres.ts'
import { eventually } from '../../platform/running/eventually.fixture.ts'
import { Heartbeats } from '../../platform/running/heartbeats.ts'
import type { SealingKeys } from '../../platform/seal.ts'
import { Relay } from '../relay/relay.ts'
import type { Original } from './dead-letter.ts'
import {
  type DeadLetter,
  openLetter,
  positionOf,
  type ReadTopic,
  readDeadLetters,
  replay,
} from './dead-letters.ts'
import { Intake, type IntakeDeps } from './intake.ts'
import type { MerchantTerms } from './parse-command.ts'
import { previewReplay } from './preview-replay.ts'

const payouts = sql<object, { payoutId: string; state: string }>`
  select payout_id, state from payouts order by payout_id`
const inOrder = sql<object, { reason: string | null }>`select reason from payouts order by seq`
const rows = sql<object, { rows: bigint }>`
  select (select count(*) from payouts) + (select count(*) from payout_commands) + (select count(*) from history)
    + (select count(*) from ${outboxMessages}) + (select count(*) from anomalies) as rows`
const waiting = sql<object, { position: bigint }>`select position from outbox limit 1`

const LOG = 'FirstLogOfTheCommands_'

const reading: ReadTopic = (topic, onRecord) =>
  readTopic({ connection: kafka(), topic, onRecord, log: silentLogger })

/**
 * An intake that knows a merchant only after `join`: until then it dead-letters the merchant's commands. `take` hands over
 * records of one partition and publishes the results to Kafka.
 */
async function intake(t: TestContext) {
  const { ledger: opened, config, codec } = await testLedger(t)
  const ledger = { ...opened, topics: topicNames(`d${randomBytes(4).toString('hex')}.`) }
  for (const topic of Object.values(ledger.topics)) await makeTopic(topic, 2)
  const terms = new Map<string, MerchantTerms>()
  const deps: IntakeDeps = {
    ledger,
    terms,
    keys: { sealing: config.sealing, fingerprint: config.fingerprintKey },
    decode: (value) => codec.decode(value),
    log: silentLogger,
    counted: new Metrics().counter('commands_total', 'test', ['outcome']),
  }
  const publisher = createPublisher('test', kafka(), silentLogger)
  t.after(() => publisher.close())
  const relay = new Relay({
    db: ledger.db,
    publisherOf: () => publisher,
    ping: async () => undefined,
    owner: randomUUID(),
    shards: SHARDS,
    published: new Metrics().counter('published_total', 'test', ['topic']),
    refused: new Metrics().counter('refused_total', 'test', ['topic', 'reason']),
    heartbeats: new Heartbeats(),
    log: silentLogger,
  })
  await standAt(ledger, 0, { offset: 0n, logId: LOG })
  let offset = 0n
  let intake = new Intake(deps)
  return {
    config,
    ledger,
    codec,
    deps,
    publish: publisher.publish,
    requested: codec.encoder<object>(opened.topics.commands, 'in.payoutd.PayoutRequested'),
    cancelRequested: codec.encoder<object>(opened.topics.commands, 'in.payoutd.PayoutCancelRequested'),
    join: () => terms.set('acme', config.merchants.get('acme') ?? assert.fail('acme is not in the settings')),
    async take(records: readonly Pick<IncomingRecord, 'key' | 'value' | 'headers' | 'unreadable'>[]) {
      const stored = { offset, logId: LOG }
      const batch = records.map((record) => ({ ...record, offset: offset++, timestamp: 0 }))
      const topic = ledger.topics.commands
      await intake.process({ topic, partition: 0, records: batch, nextOffset: offset, stored })
      await eventually('all to be published', async () => {
        await relay.turn(0)
        return (await ledger.db.run(waiting, {})).length === 0
      })
    },
    letters: (readTopic = reading) => readDeadLetters(ledger.topics, { db: ledger.db, readTopic }),
    /** Kafka has lost the end of the log of commands: other ones come at the same offsets. */
    async loseLog() {
      offset = 0n
      await ledger.db.run(beginAgain, {})
      intake = new Intake(deps)
    },
    async published(topic: string) {
      const records: IncomingRecord[] = []
      await reading(topic, (record) => void records.push(record))
      return records
    },
  }
}

const record = (value: Buffer | null, key: string | null = 'acme:x', headers = {}) => ({
  key: key === null ? null : Buffer.from(key),
  value,
  headers,
})

function originalIn(letter: DeadLetter, keys: SealingKeys): Original {
  const inside = openLetter(letter, keys)
  return inside?.kind === 'original' ? inside : assert.fail('it holds no record')
}

test('dead letters come in the order of their originals, each once, with their content', async (t) => {
  const { take, letters, config, ledger } = await intake(t)
  const values = Array.from({ length: 12 }, (_, i) => Buffer.from(`no command ${i}`))
  await take([...values.map((value) => record(value)), record(null, null, { traceparent: 'as it came' })])
  const found = await letters()
  assert.deepEqual(
    found.map(({ origin }) => origin),
    Array.from({ length: 13 }, (_, i) => `${ledger.topics.commands}#${LOG}:0:${i}`),
  )
  const opened = found.map((letter) => openLetter(letter, config.sealing))
  assert.deepEqual(
    opened.slice(0, 12).map((inside) => inside?.kind === 'original' && inside.value),
    values,
  )
  assert.deepEqual(opened[12], {
    kind: 'original',
    key: null,
    value: null,
    headers: { traceparent: [Buffer.from('as it came')] },
  })

  const again = publisherOf(t)
  await again(ledger.topics.deadLetters, ['not of payoutd'])
  assert.deepEqual(
    (await letters()).map(({ reason }) => reason),
    ['not-from-payoutd', ...Array(12).fill('not-avro'), 'tombstone'],
  )
})

test('a replay publishes headers that came twice, or are not text, as they came', async (t) => {
  const { take, letters, config, ledger, publish, published } = await intake(t)
  const bytes = Buffer.from([0xff, 0x00, 0xfe])
  const headers = { twice: [Buffer.from('one'), Buffer.from('two')], bytes, empty: Buffer.alloc(0) }
  await take([record(Buffer.from('no command'), 'k', headers)])
  const [letter] = await letters()
  assert.ok(letter)
  const original = originalIn(letter, config.sealing)
  const who = { by: 'asha', reason: 'once more' }
  await replay([{ letter, original }], who, { db: ledger.db, topics: ledger.topics, publish })
  const [again] = await published(ledger.topics.commands)
  assert.deepEqual({ ...again?.headers }, headers)
})

test('a dead letter that the relay published twice counts once', async (t) => {
  const { take, letters, ledger, publish, published } = await intake(t)
  await take([record(Buffer.from('no command'))])
  const { deadLetters } = ledger.topics
  const [once] = await published(deadLetters)
  await publish([
    {
      topic: deadLetters,
      key: once?.key ?? null,
      value: once?.value ?? null,
      headers: once?.headers as never,
    },
  ])
  assert.equal((await published(deadLetters)).length, 2)
  assert.equal((await letters()).length, 1)
})

test('the dead letter of a record that is too large or unreadable identifies it and says where it is', async (t) => {
  const { take, letters, config, ledger } = await intake(t)
  const unreadable = { reason: 'unreadable-batch', detail: 'a batch of the offsets 2 to 9' } as const
  const [fits, large] = [Buffer.alloc(256 * 1024 - 600, 1), Buffer.alloc(900 * 1024, 1)]
  await take([record(fits), record(large), { ...record(null), unreadable }])
  const found = await letters()
  assert.deepEqual(
    found.map(({ reason, origin }) => [reason, origin]),
    ['not-avro', 'too-large', 'unreadable-batch'].map((reason, i) => [
      reason,
      `${ledger.topics.commands}#${LOG}:0:${i}`,
    ]),
  )
  const [kept, ...traces] = found.map((letter) => openLetter(letter, config.sealing))
  assert.ok(kept?.kind === 'original' && kept.value?.equals(fits))
  assert.deepEqual(traces, [
    {
      kind: 'trace',
      why: 'it is larger than 262144 bytes',
      bytes: large.length,
      sha256: createHash('sha256').update(large).digest('hex'),
    },
    {
      kind: 'trace',
      why: unreadable.detail,
      bytes: 0,
      sha256: createHash('sha256').digest('hex'),
    },
  ])
})

test('with other keys a dead letter does not open', async (t) => {
  const { take, letters } = await intake(t)
  await take([record(Buffer.from('no command'))])
  const [letter] = await letters()
  assert.ok(letter)
  assert.equal(
    openLetter(letter, { current: 1, keys: new Map([[1, createSecretKey(randomBytes(32))]]) }),
    null,
  )
})

test('a replay publishes the original bytes, key and headers, and records what was replayed, by whom and why', async (t) => {
  const { take, letters, config, ledger, publish, published, requested, join } = await intake(t)
  const values = ['p-1', 'p-2', 'p-3'].map((payoutId) => requested(command(payoutId)))
  await take(values.map((value, i) => record(value, `key-${i}`, { traceparent: `of ${i}` })))
  const opened = (await letters()).map((letter) => ({
    letter,
    original: originalIn(letter, config.sealing),
  }))
  await replay(
    opened,
    { by: 'asha', reason: 'merchant added' },
    { db: ledger.db, topics: ledger.topics, publish },
  )

  const commands = await published(ledger.topics.commands)
  assert.deepEqual(
    commands
      .map(({ key, value, headers }) => [String(key), value, String(headers.traceparent)])
      .toSorted(([a], [b]) => String(a).localeCompare(String(b))),
    values.map((value, i) => [`key-${i}`, value, `of ${i}`]),
  )
  const replays = (await letters()).map(({ replayed }) => replayed)
  assert.deepEqual(
    replays.map((each) => [each?.replayedBy, each?.reason, each?.times]),
    Array(3).fill(['asha', 'merchant added', 1]),
  )

  join()
  await take(commands)
  assert.deepEqual(
    (await ledger.db.run(payouts, {})).map(({ payoutId, state }) => [payoutId, state]),
    [
      ['p-1', 'queued'],
      ['p-2', 'queued'],
      ['p-3', 'queued'],
    ],
  )
  await replay(
    opened.slice(0, 1),
    { by: 'ravi', reason: 'again' },
    { db: ledger.db, topics: ledger.topics, publish },
  )
  const [first] = await letters()
  assert.deepEqual(
    [positionOf(first ?? assert.fail('gone')), first?.replayed?.replayedBy, first?.replayed?.times],
    [positionOf(opened[0]?.letter ?? assert.fail('gone')), 'ravi', 2],
  )
})

const beginAgain = sql<object>`update intake_offsets set next_offset = 0`

test('a dead letter is neither hidden nor taken for replayed by another one, of a record or at a position that Kafka has lost', async (t) => {
  const { take, letters, loseLog, config, ledger, publish, published, requested } = await intake(t)
  await take([record(requested(command('p-1')), 'acme:p-1')])
  const who = { by: 'asha', reason: 'merchant added' }
  const opened = (await letters()).map((letter) => ({ letter, original: originalIn(letter, config.sealing) }))
  await replay(opened, who, { db: ledger.db, topics: ledger.topics, publish })
  await loseLog()
  await take([record(requested(command('p-2')), 'acme:p-2')])
  const shown = (some: readonly DeadLetter[]) =>
    some.map((letter) => [String(originalIn(letter, config.sealing).key), letter.replayed?.times ?? 0])
  assert.deepEqual(shown(await letters()), [
    ['acme:p-1', 1],
    ['acme:p-2', 0],
  ])
  const ids = (await published(ledger.topics.deadLetters)).map(({ headers }) => String(headers.ce_id))
  assert.equal(new Set(ids).size, 2)

  const [first, second] = (await letters()) as [DeadLetter, DeadLetter]
  const inPlaceOfFirst: ReadTopic = async (topic, onRecord) => {
    await reading(topic, (each) => {
      if (each.value?.equals(second.sealed))
        onRecord({ ...each, partition: first.partition, offset: first.offset })
    })
  }
  assert.deepEqual(shown(await letters(inPlaceOfFirst)), [['acme:p-2', 0]])
})

test('a preview of many letters takes them in parts, each with everything about one payout or bank account', async (t) => {
  const { deps, ledger, requested, join } = await intake(t)
  const terms = new Map([...join()].map(([id, acme]) => [id, { ...acme, holdDuplicates: true }]))
  const parts: Promise<unknown>[] = []
  const db: Database = {
    ...ledger.db,
    transaction: (name, work) => {
      const part = ledger.db.transaction(name, work)
      parts.push(part)
      return part
    },
  }
  const account = (i: number) => ({ accountNo: `5010012${String(i).padStart(7, '0')}` })
  const values = [
    ...Array.from({ length: 1_100 }, (_, i) => requested(command(`p-${i}`, account(i)))),
    requested(command('p-0', account(0))),
    requested(command('p-1', account(2_000))),
    requested(command('again', { ...account(2), batchId: 'december' })),
  ]
  const expected = await previewReplay(values, { ...deps, terms, ledger: { ...ledger, db } })
  assert.equal(parts.length, 3)
  assert.deepEqual(
    Object.fromEntries(Map.groupBy(expected.slice(0, 1_100), ({ kind }) => kind)).accepted?.length,
    1_100,
  )
  assert.deepEqual(
    expected.slice(1_100).map((each) => [each.kind, 'reason' in each ? each.reason : null]),
    [
      ['repeat', null],
      ['contradicts', null],
      ['accepted', 'duplicate'],
    ],
  )
})

test('a preview tells whose a file is as intake then does: that of its first payout, over all parts, and claims none', async (t) => {
  const { take, deps, ledger, requested, join } = await intake(t)
  const terms = join()
  const acme = { ...(terms.get('acme') ?? assert.fail()), holdDuplicates: true }
  for (const merchantId of ['acme', 'bolt']) terms.set(merchantId, acme)
  const row = (i: number, merchantId: string, file: string, batchId = 'november') =>
    requested({
      ...command(`${batchId}-${i}`, {
        ...{ batchId, fileHash: createHash('sha256').update(file).digest('hex') },
        accountNo: `5010012${String(i).padStart(7, '0')}`,
        amount: paise(batchId === 'november' ? 10_000n : 20_000n),
      }),
      merchantId,
    })
  await take([record(row(1, 'acme', 'known'))])
  const repeated = row(1, 'acme', 'saved')
  const values = [
    repeated,
    row(6, 'bolt', 'saved'),
    row(1, 'bolt', 'known'),
    row(2, 'bolt', 'new'),
    ...Array.from({ length: 500 }, (_, i) => row(10 + i, 'bolt', 'other')),
    row(2, 'acme', 'new'),
    row(3, 'acme', 'known'),
    // The second of these is of an account that comes before.
    row(4, 'acme', 'newest'),
    row(2, 'bolt', 'newest', 'december'),
  ]
  const expected = await previewReplay(values, deps)
  const told = expected.map((each) => (each.kind === 'accepted' ? each.reason : each.kind))
  assert.deepEqual(
    [...told.slice(0, 4), ...told.slice(-4)],
    ['repeat', 'duplicate-file', 'duplicate-file', null, 'duplicate-file', null, null, 'duplicate-file'],
  )
  assert.deepEqual(await ledger.db.run(sql<object>`select from files`, {}), [{}])
  await take(values.map((value) => record(value)))
  const stored = await ledger.db.run(inOrder, {})
  assert.deepEqual(
    stored.slice(1).map(({ reason }) => reason),
    told.slice(1),
  )
})

test('a preview shows what intake then does, and leaves nothing behind', async (t) => {
  const { take, deps, ledger, requested, cancelRequested, join } = await intake(t)
  join()
  await take([record(requested(command('known'))), record(requested(command('sent')))])
  await ledger.db.run(
    sql<object>`alter table payouts add constraint odd check (payout_id <> 'refused-13')`,
    {},
  )
  const cancel = (payoutId: string) =>
    cancelRequested({ payoutId, merchantId: 'acme', reason: 'left', requestedBy: 'hr' })
  const values = [
    Buffer.from('{"accountNo":"50100999988887"}'),
    requested(command('x', { merchantId: 'nobody' })),
    requested(command('known')),
    requested(command('known', { accountNo: '50100123456780' })),
    requested(command('bad', { ifsc: 'X' })),
    requested(command('refused-13')),
    requested(command('new')),
    requested(command('new')),
    cancel('known'),
    cancel('unheard-of'),
  ]
  const before = await ledger.db.run(rows, {})
  const expected = await previewReplay(values, deps)
  assert.deepEqual(await ledger.db.run(rows, {}), before)
  assert.deepEqual(
    expected.map((each) => [
      each.kind,
      'reason' in each ? each.reason : 'to' in each ? each.to : null,
      'state' in each ? each.state : null,
    ]),
    [
      ['dead', 'not-avro', null],
      ['dead', 'unknown-merchant', null],
      ['repeat', null, null],
      ['contradicts', null, null],
      ['rejected', null, null],
      ['dead', 'refused-by-database', null],
      ['accepted', null, 'queued'],
      ['repeat', null, null],
      ['cancel', 'cancelled', null],
      ['cancel', null, null],
    ],
  )

  await take(values.map((value) => record(value)))
  const counted = await deps.counted.get()
  assert.deepEqual(Object.fromEntries(counted.values.map(({ labels, value }) => [labels.outcome, value])), {
    accepted: 2 + 1,
    rejected: 1,
    repeated: 2,
    contradicts: 1,
    'dead-lettered': 3,
  })
  assert.deepEqual(
    (await ledger.db.run(payouts, {})).map(({ payoutId, state }) => [payoutId, state]),
    [
      ['bad', 'rejected'],
      ['known', 'cancelled'],
      ['new', 'queued'],
      ['sent', 'queued'],
    ],
  )
})
