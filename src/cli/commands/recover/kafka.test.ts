import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testLedger } from '../../../../test/ledger.ts'
import { newTopic, openTransaction, publisher } from '../../../platform/kafka/kafka.fixture.ts'
import { turningWire } from '../../../platform/kafka/turned-bit.fixture.ts'
import { endsOf, published } from './kafka.ts'

test('a batch that Kafka keeps damaged ends a recovery, which names it and leaves it out only if told to', async (t) => {
  const { config, ledger, codec } = await testLedger(t)
  const topic = await newTopic()
  const publish = publisher(t)
  for (const text of ['paid 1', 'paid 2']) await publish(topic, [text])
  const bit = { content: 'paid 1', way: 'from Kafka', times: Number.POSITIVE_INFINITY } as const
  const { connection } = await turningWire(t, bit)
  const read = async (leaveOut: string[]) => {
    const options = { leaveOut } as Parameters<typeof published>[3]
    const { readTopic } = published(ledger, codec, { ...config, kafka: connection }, options)
    await readTopic(topic, async () => undefined)
  }
  await assert.rejects(
    read([]),
    new RegExp(
      `${topic}/0/0: .* its checksum, format or offset was wrong .* run the command again with --leave-out ${topic}/0/0$`,
    ),
  )
  await read([`${topic}/0/0`])
})

test('intake has to read the commands that wait for the end of a transaction, too, before a recovery asks the gateway', async (t) => {
  const { config } = await testLedger(t)
  const topic = await newTopic()
  const transaction = await openTransaction(t, [topic])
  assert.equal((await endsOf(topic, config))[0]?.high, 1n)
  await transaction.abort()
})
