import kafkajs, { type Kafka } from 'kafkajs'
import { ask, type Broker, type Reader, type Request } from './kafkajs-request.ts'

export type Cluster = {
  connect(): Promise<void>
  refreshMetadata(): Promise<void>
  disconnect(): Promise<void>
  brokerPool: { findConnectedBroker(): Promise<Broker> }
  findBroker(by: { nodeId: string }): Promise<Broker>
  addTargetTopic(topic: string): Promise<void>
  findTopicPartitionMetadata(topic: string): { partitionId: number; leader: number }[]
  fetchTopicsOffset(
    about: { topic: string; fromBeginning: boolean; partitions: { partition: number }[] }[],
  ): Promise<{ partitions: { partition: number; offset: string }[] }[]>
  findGroupCoordinator(by: { groupId: string }): Promise<{
    offsetFetch(about: {
      groupId: string
      topics: { topic: string; partitions: { partition: number }[] }[]
    }): Promise<{ responses: { partitions: { partition: number; offset: string }[] }[] }>
  }>
}

export interface TopicIds {
  /**
   * The id that Kafka gave a topic when it was created, as Kafka's own tools print it; null: this Kafka has no
   * topic ids (before 2.8). A topic that was deleted and created again has another id. Throws if there is no such
   * topic.
   */
  idOf(topic: string): Promise<string | null>
  close(): Promise<void>
}

/** Kafka's UNKNOWN_TOPIC_OR_PARTITION. */
const UNKNOWN_TOPIC = 3
const NO_ID = Buffer.alloc(16)

/** Connects on the first request. */
export function topicIds(kafka: Kafka): TopicIds {
  const cluster = clusterOf(kafka)
  let connected: Promise<void> | undefined
  const connect = (): Promise<void> => {
    connected ??= cluster
      .connect()
      .then(() => cluster.refreshMetadata())
      .catch((error: unknown) => {
        connected = undefined
        throw error
      })
    return connected
  }
  return {
    async idOf(topic) {
      await connect()
      return ask(await cluster.brokerPool.findConnectedBroker(), metadataOf(topic))
    },
    close: () => cluster.disconnect(),
  }
}

/** Where a partition ends: before the first open transaction, or after all that its replicas have. */
export type Isolation = 'committed' | 'uncommitted'

/** KafkaJS does not expose how it reaches its brokers. */
export function clusterOf(kafka: Kafka, isolation: Isolation = 'committed'): Cluster {
  const symbol = Object.getOwnPropertySymbols(kafka).find(
    ({ description }) => description === 'private:Kafka:createCluster',
  )
  if (!symbol)
    throw new Error(
      'this is another version of KafkaJS than the one for which topic-id.ts was written (2.2.4)',
    )
  const create = (kafka as unknown as Record<symbol, (options: object) => Cluster>)[symbol]
  return (create as (options: object) => Cluster)({
    allowAutoTopicCreation: false,
    isolationLevel: isolation === 'committed' ? 1 : 0,
  })
}

/** Metadata about one topic. Ids came with version 10 (KIP-516); KafkaJS 2.2.4 supports version 6. */
const metadataOf = (topic: string): Request<string> => ({
  ...{ apiKey: 3, apiVersion: 10, apiName: 'Metadata' },
  write: (to) =>
    to
      .writeUVarInt(0) // no tagged fields in the header
      .writeUVarInt(1 + 1) // one topic
      .writeInt64('0') // with an id not known yet
      .writeInt64('0')
      .writeUVarIntString(topic)
      .writeUVarInt(0)
      .writeBoolean(false) // do not create it
      .writeBoolean(false)
      .writeBoolean(false)
      .writeUVarInt(0),
  read: (reader) => readId(reader, topic),
})

function readId(reader: Reader, topic: string): string {
  reader.readTaggedFields()
  reader.readInt32() // throttle time
  reader.readUVarIntArray((broker) => {
    broker.readInt32()
    broker.readUVarIntString()
    broker.readInt32()
    broker.readUVarIntString()
    broker.readTaggedFields()
  })
  reader.readUVarIntString() // cluster id
  reader.readInt32() // controller
  const [first] = reader.readUVarIntArray((each) => {
    const errorCode = each.readInt16()
    each.readUVarIntString()
    const id = Buffer.from(each.buffer.subarray(each.offset, each.offset + NO_ID.length))
    each.forward(NO_ID.length)
    each.readBoolean()
    each.readUVarIntArray((partition) => {
      partition.readInt16()
      for (let i = 0; i < 3; i++) partition.readInt32()
      for (let i = 0; i < 3; i++) partition.readUVarIntArray((replica) => replica.readInt32())
      partition.readTaggedFields()
    })
    each.readInt32()
    each.readTaggedFields()
    return { errorCode, id }
  })
  if (!first || first.id.equals(NO_ID)) {
    const error = new Error(`Kafka does not tell the id of topic ${topic} (error code ${first?.errorCode})`)
    if (first?.errorCode !== UNKNOWN_TOPIC) throw error
    throw new kafkajs.KafkaJSProtocolError(Object.assign(error, { type: 'UNKNOWN_TOPIC_OR_PARTITION' }))
  }
  return first.id.toString('base64url')
}
