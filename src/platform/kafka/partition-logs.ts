import type { Logger } from '../log.ts'
import { type KafkaConnection, kafkaFor } from './connection.ts'
import { endOfEpoch } from './kafkajs/leader-epoch.ts'
import { type Cluster, clusterOf, type TopicIds, topicIds } from './kafkajs/topic-id.ts'
import type { Log } from './offsets.ts'

export interface PartitionLogs {
  /**
   * What Kafka holds of a partition, whatever is wrong with the others of its topic. Throws where there is none, it has
   * no leader, or Kafka does not tell. `epoch`: of which the end is asked for.
   */
  logOf(at: { topic: string; partition: number }, epoch?: number | null): Promise<Log>
  /** Up to (without) which offset somebody of a group has read it, by what was committed to Kafka; null: nobody has. */
  committed(at: { topic: string; partition: number }, groupId: string): Promise<bigint | null>
  /** As `TopicIds` has it. */
  idOf(topic: string): Promise<string | null>
  close(): Promise<void>
}

/** Kafka's word for no offset. */
const NONE = -1n

type Clients = { cluster: Cluster; ids: TopicIds; retired: AbortController }

/**
 * Asks over connections of its own. KafkaJS 2.2.4 takes a connection for good whose very first answer came too late, and
 * refuses each later request on it (`Broker not connected`): after a failure the next question goes over new ones.
 * `ended`: as of `kafkaFor`.
 */
export function partitionLogs(connection: KafkaConnection, log: Logger, ended: AbortSignal): PartitionLogs {
  const make = (): Clients => {
    const retired = new AbortController()
    const kafka = kafkaFor(connection, log, AbortSignal.any([ended, retired.signal]))
    return { cluster: clusterOf(kafka), ids: topicIds(kafka), retired }
  }
  let clients = make()

  const end = ({ cluster, ids, retired }: Clients) =>
    Promise.all([cluster.disconnect(), ids.close()])
      .catch((error: unknown) => {
        log.debug({ err: error }, 'Kafka client did not disconnect cleanly')
      })
      .finally(() => retired.abort())

  async function ask<Answer>(question: (clients: Clients) => Promise<Answer>): Promise<Answer> {
    const asked = clients
    try {
      return await question(asked)
    } catch (error) {
      if (asked === clients) {
        clients = make()
        // On a connection without an answer it takes its time.
        void end(asked)
      }
      throw error
    }
  }

  return {
    idOf: (topic) => ask(({ ids }) => ids.idOf(topic)),
    async logOf({ topic, partition }, epoch = null) {
      const held = await ask(async ({ cluster, ids }) => {
        // The id first: of a topic that is made again meanwhile, the range is never taken for that of the newer one.
        const id = await ids.idOf(topic)
        const range = await rangeOf(cluster, topic, partition, epoch)
        return typeof range === 'string' ? range : { id, ...range }
      })
      // No fault of the connections, over which the other partitions are asked about too.
      if (typeof held === 'string') throw new Error(held)
      return held
    },
    committed: ({ topic, partition }, groupId) =>
      ask(async ({ cluster }) => {
        await cluster.connect()
        const coordinator = await cluster.findGroupCoordinator({ groupId })
        const topics = [{ topic, partitions: [{ partition }] }]
        const { responses } = await coordinator.offsetFetch({ groupId, topics })
        const offset = BigInt(responses[0]?.partitions[0]?.offset ?? NONE)
        return offset === NONE ? null : offset
      }),
    async close() {
      await end(clients)
    },
  }
}

/** Why there is none, in words, where Kafka tells that. */
async function rangeOf(
  cluster: Cluster,
  topic: string,
  partition: number,
  epoch: number | null,
): Promise<Omit<Log, 'id'> | string> {
  await cluster.connect()
  await cluster.addTargetTopic(topic)
  await cluster.refreshMetadata()
  const found = cluster.findTopicPartitionMetadata(topic).find(({ partitionId }) => partitionId === partition)
  if (!found) return `topic ${topic} has no partition ${partition}`
  if (found.leader < 0) return `partition ${partition} of topic ${topic} has no leader: its brokers are down`
  const edge = async (fromBeginning: boolean): Promise<bigint> => {
    const [answer] = await cluster.fetchTopicsOffset([{ topic, fromBeginning, partitions: [{ partition }] }])
    return BigInt(answer?.partitions[0]?.offset as string)
  }
  const ofEpoch = epoch !== null && {
    epochEnd: await endOfEpoch(cluster, found.leader, { topic, partition, epoch }),
  }
  const high = await edge(false)
  return { low: await edge(true), high, ...ofEpoch }
}
