import { randomUUID } from 'node:crypto'
import type { TestContext } from 'node:test'
import { Kafka, logLevel, type Transaction } from 'kafkajs'
import { silentLogger } from '../log.ts'
import type { AvroSchema } from '../registry/avro.ts'
import type { Compatibility, SchemaSubject } from '../registry/registry.ts'
import { eventually } from '../running/eventually.fixture.ts'
import { connectAdmin } from './admin.ts'
import { type KafkaConnection, kafkaFor } from './connection.ts'
import { createPublisher } from './producer.ts'

function required(name: string): string {
  const value = process.env[name]
  if (!value) throw new Error(`${name} is not set: these tests need a running Kafka and schema registry`)
  return value
}

export const registryUrl = (): string => required('TEST_SCHEMA_REGISTRY_URL')
export const kafka = (): KafkaConnection => ({
  brokers: required('TEST_KAFKA_BROKERS').split(','),
  clientId: 'payoutd-test',
})

export const unique = (name: string): string => `${name}-${randomUUID()}`

/** A schema as if it came from a file, on a topic of this test alone. */
export const subjectOf = (
  schema: AvroSchema,
  topic = unique('topic'),
  compatibility: Compatibility = 'FULL_TRANSITIVE',
): SchemaSubject => ({ topic, schema, text: JSON.stringify(schema, null, 2), compatibility })

/** A topic of this test alone. */
export async function newTopic(partitions = 1, configs: Record<string, string> = {}): Promise<string> {
  const name = unique('test')
  await makeTopic(name, partitions, configs)
  return name
}

export async function makeTopic(
  name: string,
  partitions = 1,
  configs: Record<string, string> = {},
): Promise<void> {
  const admin = await connectAdmin(kafka(), silentLogger)
  await admin.createTopics([{ name, partitions, replication: 1, configs }])
  await admin.close()
}

/** How far a group is behind on each partition of a topic, by the offset that it committed to Kafka. */
export async function lagOf(
  groupId: string,
  topic: string,
): Promise<{ committed: bigint | null; lag: bigint }[]> {
  const ended = new AbortController()
  const admin = kafkaFor(kafka(), silentLogger, ended.signal).admin()
  await admin.connect()
  const [committed] = await admin.fetchOffsets({ groupId, topics: [topic] })
  const ranges = await admin.fetchTopicOffsets(topic)
  await admin.disconnect()
  ended.abort()
  return ranges.map(({ partition, low, high }) => {
    const offset = BigInt(committed?.partitions.find((one) => one.partition === partition)?.offset ?? -1)
    const from = offset < 0n ? BigInt(low) : offset
    return { committed: offset < 0n ? null : offset, lag: BigInt(high) - from }
  })
}

/** Publishes texts under keys; closed when the test ends. */
export function publisher(t: TestContext) {
  const producer = createPublisher('test', kafka(), silentLogger)
  t.after(() => producer.close())
  return (topic: string, texts: string[], key = 'key') =>
    producer.publish(texts.map((text) => ({ topic, key, value: Buffer.from(text) })))
}

/** A transaction of somebody else that has sent a record under `key` to each topic; the test ends it. */
export async function openTransaction(
  t: TestContext,
  topics: readonly string[],
  key = 'key',
): Promise<Transaction> {
  const producer = new Kafka({ ...kafka(), logLevel: logLevel.NOTHING }).producer({
    ...{ idempotent: true, maxInFlightRequests: 1, transactionalId: unique('transaction') },
  })
  await producer.connect()
  t.after(() => producer.disconnect())
  const transaction = await producer.transaction()
  for (const topic of topics)
    await transaction.send({ topic, messages: [{ key, value: 'in a transaction' }] })
  return transaction
}

/** Deletes a topic and creates it again. Deleting takes Kafka a moment, and it refuses to create until then. */
export async function remakeTopic(name: string, partitions = 1): Promise<void> {
  const ended = new AbortController()
  const admin = kafkaFor(kafka(), silentLogger, ended.signal).admin()
  await admin.connect()
  await admin.deleteTopics({ topics: [name] })
  await eventually('the topic to be made again', () =>
    admin
      .createTopics({ topics: [{ topic: name, numPartitions: partitions }], waitForLeaders: false })
      .catch(() => false),
  )
  await eventually('the topic to be known again', () =>
    admin.fetchTopicMetadata({ topics: [name] }).then(
      ({ topics }) => topics[0]?.partitions.every(({ leader }) => leader >= 0) ?? false,
      () => false,
    ),
  )
  await admin.disconnect()
  ended.abort()
}
