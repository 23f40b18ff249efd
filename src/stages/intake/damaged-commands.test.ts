import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { testLedger } from '../../../test/ledger.ts'
import { outboxMessages } from '../../../test/outbox-messages.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { openDetails } from '../../ledger/encrypted-details.ts'
import { topicNames } from '../../messages/topics.ts'
import { consumeBatches } from '../../platform/kafka/consumer.ts'
import { kafka, makeTopic, unique } from '../../platform/kafka/kafka.fixture.ts'
import { createPublisher } from '../../platform/kafka/producer.ts'
import { type TurnedBit, turningWire } from '../../platform/kafka/turned-bit.fixture.ts'
import { silentLogger } from '../../platform/log.ts'
import { Metrics } from '../../platform/metrics.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { eventually } from '../../platform/running/eventually.fixture.ts'
import { Intake } from './intake.ts'
import { startingOffset } from './starting-offset.ts'

const stored = sql<object, { payoutId: string; sealed: Buffer }>`
  select payout_id, sealed from payout_commands order by payout_id`
const letters = sql<object, { topic: string; headers: unknown }>`select topic, headers from ${outboxMessages}`
const position = sql<object, { nextOffset: bigint }>`select next_offset from intake_offsets`

/** What intake makes of two commands, each in a batch of its own, if a bit in the account number of the first turns. */
async function processDamaged(t: TestContext, times: TurnedBit['times']) {
  const { config, ledger: opened, codec } = await testLedger(t)
  const ledger = { ...opened, topics: topicNames(`${unique('c')}.`) }
  const topic = ledger.topics.commands
  await makeTopic(topic)
  const producer = createPublisher('test', kafka(), silentLogger)
  t.after(() => producer.close())
  const requested = codec.encoder<object>(opened.topics.commands, 'in.payoutd.PayoutRequested')
  for (const [payoutId, accountNo] of [
    ['p1', '50100123456789'],
    ['p2', '60200987654321'],
  ] as const)
    await producer.publish([
      { topic, key: `acme:${payoutId}`, value: requested(command(payoutId, { accountNo })) },
    ])
  const wire = await turningWire(t, { content: '50100123456789', way: 'from Kafka', times })
  const intake = new Intake({
    ledger,
    terms: config.merchants,
    keys: { sealing: config.sealing, fingerprint: config.fingerprintKey },
    decode: (value) => codec.decode(value),
    log: silentLogger,
    counted: new Metrics().counter('commands_total', 'test', ['outcome']),
  })
  const consumption = consumeBatches({
    connection: wire.connection,
    groupId: unique('group'),
    topics: [topic],
    partitionsAtOnce: 1,
    begin: (at, logOf, known) =>
      startingOffset(at, logOf, { ledger, merchantIds: ['acme'], log: silentLogger }, known),
    handler: (batch) => intake.process(batch),
    log: silentLogger,
  })
  t.after(() => consumption.stop())
  await eventually('both batches', async () => (await ledger.db.run(position, {}))[0]?.nextOffset === 2n)
  assert.ok(wire.turned() > 0)
  const commands = await ledger.db.run(stored, {})
  return {
    accounts: commands.map(({ payoutId, sealed }) => [
      payoutId,
      openDetails({ merchantId: 'acme', payoutId }, sealed, config.sealing).accountNo,
    ]),
    deadLetters: (await ledger.db.run(letters, {}))
      .filter(({ topic }) => topic === ledger.topics.deadLetters)
      .map(({ headers }) => headers),
    topic,
  }
}

test('a bit of an account number that turns on the way from Kafka sends nobody else the money', async (t) => {
  const { accounts, deadLetters } = await processDamaged(t, 1)
  assert.deepEqual(accounts, [
    ['p1', '50100123456789'],
    ['p2', '60200987654321'],
  ])
  assert.deepEqual(deadLetters, [])
})

test('a command in a batch that Kafka keeps damaged becomes one dead letter with its position, and the next is taken', async (t) => {
  const { accounts, deadLetters, topic } = await processDamaged(t, Number.POSITIVE_INFINITY)
  assert.deepEqual(accounts, [['p2', '60200987654321']])
  assert.equal(deadLetters.length, 1)
  const { reason, origin } = deadLetters[0] as { reason: string; origin: string }
  assert.equal(reason, 'unreadable-batch')
  assert.match(origin, new RegExp(`^${topic}#[^:]+:0:0$`))
})
