import type { Logger } from '../log.ts'
import { type KafkaConnection, kafkaFor } from './connection.ts'
import { endOfEpoch } from './kafkajs/leader-epoch.ts'
import { type Cluster, clusterOf, type TopicIds, topicIds } from './kafkajs/topic-id.ts'
import type { Log } from './offsets.ts'

export interface PartitionLogs {
  /**
   * What Kafka holds of a partition, whatever is wrong with the topic's other partitions. Throws if there is no
   * such partition, it has no leader, or Kafka does not report it. `epoch`: also returns the end of this epoch.
   */
  logOf(at: { topic: string; partition: number }, epoch?: number | null): Promise<Log>
  /**
   * The offset (exclusive) up to which any member of a group has read the partition, by what it committed to Kafka;
   * null: no member has.
   */
  committed(at: { topic: string; partition: number }, groupId: string): Promise<bigint | null>
  /** See `TopicIds`. */
  idOf(topic: string): Promise<string | null>
  close(): Promise<void>
}

/** Kafka's value for "no offset". */
const NONE = -1n

type Clients = { cluster: Cluster; ids: TopicIds; retired: AbortController }

/**
 * Asks over its own connections. If the first answer on a connection comes too late, KafkaJS 2.2.4 keeps the
 * connection and refuses each later request on it (`Broker not connected`): after a failure the next request goes
 * over new ones. `ended`: as in `kafkaFor`.
 */
export function partitionLogs(connection: KafkaConnection, log: Logger, ended: AbortSignal): PartitionLogs {
  const make = (): Clients => {
    const retired = new AbortController()
    const kafka = kafkaFor(connection, log, AbortSignal.any([ended, retired.signal]))
    return { cluster: clusterOf(kafka), ids: topicIds(kafka), retired }
  }
  let clients = make()
  /** Asked in this turn of the event loop. Later, something may have happened between the question and another caller's fetch. */
  const asking = new Map<string, Promise<string | null>>()

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
        // A connection without an answer takes a while to end.
        void end(asked)
      }
      throw error
    }
  }

  return {
    idOf(topic) {
      const id = asking.get(topic) ?? ask(({ ids }) => ids.idOf(topic))
      asking.set(topic, id)
      process.nextTick(() => asking.clear())
      return id
    },
    async logOf({ topic, partition }, epoch = null) {
      const held = await ask(async ({ cluster, ids }) => {
        // Asks for the id first: if the topic is created again meanwhile, its new id never goes with the old topic's
        // range.
        const id = await ids.idOf(topic)
        const range = await rangeOf(cluster, topic, partition, epoch)
        return typeof range === 'string' ? range : { id, ...range }
      })
      // The connections are fine; the requests for other partitions go over them too.
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

/** Why there is no range, if Kafka reports that. */
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
