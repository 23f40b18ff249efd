import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { command } from '../../src/domain/commands/command.fixture.ts'
import { topicSpecs } from '../../src/messages/topics.ts'
import { connectAdmin } from '../../src/platform/kafka/admin.ts'
import { createPublisher } from '../../src/platform/kafka/producer.ts'
import { silentLogger } from '../../src/platform/log.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { testLedger } from '../../test/ledger.ts'
import { TopicRecorder } from './topic-recorder.ts'

test('a reversal on the results topic is read, and is not a second end of its payout', async (t) => {
  const { config, ledger } = await testLedger(t)
  const { topics, encode } = ledger
  const admin = await connectAdmin(config.kafka, silentLogger)
  await admin.createTopics(topicSpecs(topics, config.topics))
  await admin.close()
  const { payoutId, merchantId, amount, currency } = command('p-1')
  const common = { payoutId, merchantId, amount, currency, evidence: 'OPERATOR', version: 4, occurredAt: 1 }
  const values = [
    encode('PayoutResult', { ...common, status: 'PAID' }),
    encode('PayoutReversed', { ...common, anomalyId: randomUUID(), reason: 'the bank says so' }),
  ]
  const publisher = createPublisher('test', config.kafka, silentLogger)
  t.after(() => publisher.close())
  await publisher.publish(values.map((value) => ({ topic: topics.results, key: 'acme:p-1', value })))
  const recorder = await TopicRecorder.start(config, silentLogger)
  t.after(() => recorder.stop())
  await eventually('everything to be read', () => recorder.hasReadAll())
  assert.deepEqual(
    recorder.told.results.map(({ status }) => status),
    ['PAID'],
  )
  assert.ok(recorder.isDone({ merchantId, payoutId }))
})
