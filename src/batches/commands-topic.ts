import type { BatchDeclaration, PayoutCommand } from '../domain/commands/command.ts'
import type { PartitionEnd } from '../ledger/intake-backlog.ts'
import { schemaSubjects, type Topics } from '../messages/topics.ts'
import { connectAdmin, type TopicAdmin } from '../platform/kafka/admin.ts'
import type { KafkaConnection } from '../platform/kafka/connection.ts'
import { createPublisher } from '../platform/kafka/producer.ts'
import type { OutgoingRecord } from '../platform/kafka/records.ts'
import type { Logger } from '../platform/log.ts'
import { openCodec } from '../platform/registry/codec.ts'
import { connectRegistry, type RegistryConnection } from '../platform/registry/registry.ts'
import type { Destination } from './checkpoint.ts'

/** Where an ingest publishes to. */
export interface CommandsTopic {
  readonly destination: Destination
  encodeDeclared(declared: BatchDeclaration): Buffer
  encodeRequested(command: PayoutCommand): Buffer
  /** The topic's current id: see Destination. */
  topicId(): Promise<string | null>
  /** The current end offsets of the topic's partitions, with what waits for the end of a transaction. */
  ends(): Promise<PartitionEnd[]>
  /** Resolves once every record is safe. */
  publish(records: readonly OutgoingRecord[]): Promise<void>
  close(): Promise<void>
}

/** Connects to Kafka and the registry. Throws if one of them cannot be reached or refuses. */
export async function openCommandsTopic(options: {
  kafka: KafkaConnection
  registry: RegistryConnection
  topics: Topics
  log: Logger
}): Promise<CommandsTopic> {
  const { kafka, registry, topics, log } = options
  const subjects = schemaSubjects(topics).filter(({ topic }) => topic === topics.commands)
  const codec = await openCodec(connectRegistry(registry), subjects)
  const admin = await connectAdmin(kafka, log)
  const topicId = () => admin.idOf(topics.commands)
  const destination = await destinationOf(topics.commands, admin).catch(async (error: unknown) => {
    await admin.close()
    throw error
  })
  const publisher = createPublisher('ingest', kafka, log)
  return {
    destination,
    topicId,
    ends: () => admin.logs(topics.commands, 'uncommitted'),
    encodeDeclared: codec.encoder(topics.commands, 'in.payoutd.PayoutBatchDeclared'),
    encodeRequested: codec.encoder(topics.commands, 'in.payoutd.PayoutRequested'),
    publish: (records) => publisher.publish(records),
    close: async () => {
      await publisher.close()
      await admin.close()
    },
  }
}

const destinationOf = async (topic: string, admin: TopicAdmin): Promise<Destination> => ({
  clusterId: await admin.clusterId(),
  topic,
  topicId: await admin.idOf(topic),
})
