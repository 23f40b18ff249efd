import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Role, startPayoutd } from '../src/app/start.ts'
import { command } from '../src/domain/commands/command.fixture.ts'
import { fencedMerchants } from '../src/ledger/ledger.ts'
import { topicSpecs } from '../src/messages/topics.ts'
import { connectAdmin } from '../src/platform/kafka/admin.ts'
import { kafka, lagOf, unique } from '../src/platform/kafka/kafka.fixture.ts'
import { createPublisher } from '../src/platform/kafka/producer.ts'
import { silentLogger } from '../src/platform/log.ts'
import { eventually } from '../src/platform/running/eventually.fixture.ts'
import { anomaliesOf, payoutsOf, testLedger } from './ledger.ts'

const kafkaGroup = unique('shared')

/** An installation with settings in force and its own database, sharing the topics and the group of all others here. */
async function installed(t: TestContext) {
  const { ledger, config: own, codec } = await testLedger(t)
  const config = { ...own, kafkaGroup }
  const start = async (role: Role) => {
    const payoutd = await startPayoutd(config, new Set([role]), silentLogger)
    t.after(() => payoutd.stop())
    return payoutd
  }
  const { stop } = await start('dispatch')
  await stop()
  return { ledger, codec, config, start }
}

test('an installation set up beside another one and started later sends nothing that the other has read', async (t) => {
  const first = await installed(t)
  const second = await installed(t)
  const { commands } = first.ledger.topics
  const admin = await connectAdmin(kafka(), silentLogger)
  t.after(() => admin.close())
  await admin.createTopics(topicSpecs(first.ledger.topics, first.config.topics))
  const producer = createPublisher('test', kafka(), silentLogger)
  t.after(() => producer.close())
  const value = first.codec.encoder(commands, 'in.payoutd.PayoutRequested')(command('p') as never)
  await producer.publish([{ topic: commands, key: 'p', value }])

  const { stop } = await first.start('intake')
  await eventually('the command is taken in', async () => (await payoutsOf(first.ledger)).length === 1)
  await eventually('that is known to Kafka', async () =>
    (await lagOf(kafkaGroup, commands)).some(({ committed }) => committed === 1n),
  )
  await stop()

  await second.start('intake')
  await eventually('the command is read again', async () => (await payoutsOf(second.ledger)).length === 1)
  assert.deepEqual([...(await fencedMerchants(second.ledger.db))], ['acme'])
  assert.deepEqual(await anomaliesOf(second.ledger), ['ledger-set-back'])
  assert.deepEqual([...(await fencedMerchants(first.ledger.db))], [])
})
