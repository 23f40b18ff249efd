import { setTimeout as delay } from 'node:timers/promises'
import kafkajs, { type Admin, type Kafka } from 'kafkajs'
import pLimit from 'p-limit'
import type { Logger } from '../log.ts'
import { type KafkaConnection, kafkaFor } from './connection.ts'
import { clusterOf, type Isolation, topicIds } from './kafkajs/topic-id.ts'
import type { Log, OffsetRange } from './offsets.ts'

/** A topic as it should be. `configs` are Kafka's own names and values (`retention.ms`: `604800000`). */
export type TopicSpec = {
  name: string
  partitions: number
  replication: number
  configs: Record<string, string>
}

export type PartitionRange = OffsetRange & { partition: number }

export type HeldUp = { partition: number; from: bigint; waiting: bigint }

export interface TopicAdmin {
  /** Creates missing topics, leaves the others as they are, and returns the names of the new ones. */
  createTopics(specs: readonly TopicSpec[]): Promise<string[]>
  /** The existing topics with all of their configs; missing topics are left out. */
  describeTopics(names: readonly string[]): Promise<TopicSpec[]>
  /**
   * The first offset of each partition of a topic, and the end (exclusive). Messages that wait for the end of a
   * transaction are left out, unless `isolation` says otherwise.
   */
  ranges(topic: string, isolation?: Isolation): Promise<PartitionRange[]>
  /** The id that Kafka gave the topic when it was created; null: this Kafka has no topic ids. */
  idOf(topic: string): Promise<string | null>
  /** The same as `ranges` with the id of the topic: see `Log`. */
  logs(topic: string, isolation?: Isolation): Promise<(Log & { partition: number })[]>
  /**
   * For each partition of a topic on which records wait for the end of a transaction: where the first of them
   * stands. `waiting`: how many offsets follow it, from any producer.
   */
  heldUp(topic: string): Promise<HeldUp[]>
  /** How long, in ms, a broker lets a transaction stay open; null: the broker does not report it. */
  longestTransactionMs(): Promise<number | null>
  /** Identifies one Kafka cluster, whatever its brokers are called. */
  clusterId(): Promise<string>
  close(): Promise<void>
}

/** Longer than a broker takes to create topics. A person who asks a silent Kafka waits for a few tries of this length. */
const ANSWER_WITHIN_MS = 5_000
const LONGEST_TRANSACTION = 'transaction.max.timeout.ms'
const ATTEMPTS = 10
const PAUSE_MS = 300

/** Throws when no broker can be reached. */
export async function connectAdmin(connection: KafkaConnection, log: Logger): Promise<TopicAdmin> {
  const ended = new AbortController()
  const kafka = kafkaFor({ requestTimeout: ANSWER_WITHIN_MS, ...connection }, log, ended.signal)
  const admin = kafka.admin()
  try {
    await admin.connect()
  } catch (error) {
    ended.abort()
    throw error
  }
  return new KafkaAdmin(kafka, admin, ended)
}

class KafkaAdmin implements TopicAdmin {
  readonly #kafka: Kafka
  readonly #admin: Admin
  readonly #ended: AbortController
  readonly #ids: ReturnType<typeof topicIds>
  /** For what needs metadata about topics: in KafkaJS, that about one may take the place of that about another. */
  readonly #oneAtATime = pLimit(1)

  constructor(kafka: Kafka, admin: Admin, ended: AbortController) {
    this.#kafka = kafka
    this.#admin = admin
    this.#ended = ended
    this.#ids = topicIds(kafka)
  }

  async createTopics(specs: readonly TopicSpec[]): Promise<string[]> {
    const present = await this.#existing(specs)
    const missing = specs.filter(({ name }) => !present.includes(name))
    if (missing.length === 0) return []
    try {
      // KafkaJS's own wait fails if it asks a broker that does not know the new topics yet.
      await this.#admin.createTopics({ waitForLeaders: false, topics: missing.map(toKafkaJs) })
    } catch (error) {
      // Two processes may set up the same topics at the same time.
      const isMade =
        error instanceof kafkajs.KafkaJSAggregateError &&
        (await this.#existing(missing)).length === missing.length
      if (!isMade) throw error
    }
    const topics = missing.map(({ name }) => name)
    await this.#oneAtATime(() => patiently(() => this.#expectLeaders(topics)))
    return topics
  }

  async describeTopics(names: readonly string[]): Promise<TopicSpec[]> {
    const present = await this.#existing(names.map((name) => ({ name })))
    if (present.length === 0) return []
    const [{ topics }, { resources }] = await Promise.all([
      this.#oneAtATime(() => this.#admin.fetchTopicMetadata({ topics: present })),
      this.#admin.describeConfigs({
        includeSynonyms: false,
        resources: present.map((name) => ({ type: kafkajs.ConfigResourceTypes.TOPIC, name })),
      }),
    ])
    return topics.map(({ name, partitions }) => {
      const entries = resources.find(({ resourceName }) => resourceName === name)?.configEntries ?? []
      return {
        name,
        partitions: partitions.length,
        replication: Math.min(...partitions.map(({ replicas }) => replicas.length)),
        configs: Object.fromEntries(entries.map(({ configName, configValue }) => [configName, configValue])),
      }
    })
  }

  async ranges(topic: string, isolation: Isolation = 'committed'): Promise<PartitionRange[]> {
    const stable = (await this.#offsetsOf(topic)).map(({ partition, low, high }) => ({
      partition,
      low: BigInt(low),
      high: BigInt(high),
    }))
    return isolation === 'committed' ? stable : patiently(() => this.#withWhole(topic, stable))
  }

  idOf(topic: string): Promise<string | null> {
    return this.#ids.idOf(topic)
  }

  async logs(topic: string, isolation?: Isolation): Promise<(Log & { partition: number })[]> {
    const id = await this.idOf(topic)
    return (await this.ranges(topic, isolation)).map((range) => ({ id, ...range }))
  }

  async heldUp(topic: string): Promise<HeldUp[]> {
    return stillHeldUp(await this.ranges(topic, 'uncommitted'), await this.ranges(topic))
  }

  async longestTransactionMs(): Promise<number | null> {
    const { brokers } = await this.#admin.describeCluster()
    const { resources } = await this.#admin.describeConfigs({
      includeSynonyms: false,
      resources: brokers.slice(0, 1).map(({ nodeId }) => ({
        type: kafkajs.ConfigResourceTypes.BROKER,
        name: `${nodeId}`,
        configNames: [LONGEST_TRANSACTION],
      })),
    })
    const limit = resources[0]?.configEntries.find(({ configName }) => configName === LONGEST_TRANSACTION)
    return limit ? Number(limit.configValue) : null
  }

  async clusterId(): Promise<string> {
    return (await this.#admin.describeCluster()).clusterId
  }

  async close(): Promise<void> {
    try {
      await this.#admin.disconnect()
      await this.#ids.close()
    } finally {
      this.#ended.abort()
    }
  }

  /** The names of those that exist. */
  async #existing(specs: readonly Pick<TopicSpec, 'name'>[]): Promise<string[]> {
    const all = new Set(await this.#admin.listTopics())
    return specs.flatMap(({ name }) => (all.has(name) ? [name] : []))
  }

  /** The same ranges, up to the end of what is not committed yet. */
  async #withWhole(topic: string, stable: readonly PartitionRange[]): Promise<PartitionRange[]> {
    const uncommitted = clusterOf(this.#kafka, 'uncommitted')
    try {
      await uncommitted.connect()
      await uncommitted.addTargetTopic(topic)
      const partitions = stable.map(({ partition }) => ({ partition }))
      const [all] = await uncommitted.fetchTopicsOffset([{ topic, fromBeginning: false, partitions }])
      return stable.map((range) => {
        const end = all?.partitions.find(({ partition }) => partition === range.partition)
        if (!end) throw new kafkajs.KafkaJSError(`no end of partition ${range.partition} of topic ${topic}`)
        return { ...range, high: BigInt(end.offset) }
      })
    } finally {
      await uncommitted.disconnect()
    }
  }

  /** Right after a topic is created or gets a new leader, the leader may not know yet that it leads. */
  #offsetsOf(topic: string) {
    return this.#oneAtATime(() =>
      patiently(async () => {
        await this.#expectLeaders([topic])
        return this.#admin.fetchTopicOffsets(topic)
      }),
    )
  }

  /**
   * Kafka must answer for every partition of a topic: a caller that took a partial answer as whole would miss
   * records.
   */
  async #expectLeaders(names: string[]): Promise<void> {
    const { topics } = await this.#admin.fetchTopicMetadata({ topics: names })
    for (const { name, partitions } of topics) {
      const lacking = partitions.filter(({ leader }) => leader < 0).map(({ partitionId }) => partitionId)
      if (lacking.length === 0) continue
      throw new kafkajs.KafkaJSError(`partitions ${lacking.join(', ')} of topic ${name} have no leader`)
    }
  }
}

/** Where `stable`, asked for later, ends before `whole`. */
export function stillHeldUp(whole: readonly PartitionRange[], stable: readonly PartitionRange[]): HeldUp[] {
  return whole.flatMap(({ partition, high: end }) => {
    const from = stable.find((one) => one.partition === partition)?.high ?? 0n
    return from < end ? [{ partition, from, waiting: end - from }] : []
  })
}

/** Asks again a few times if Kafka does not know yet. */
async function patiently<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask()
    } catch (error) {
      const retriable = error instanceof kafkajs.KafkaJSError && error.retriable
      if (!retriable || attempt === ATTEMPTS) throw error
      await delay(PAUSE_MS)
    }
  }
}

const toKafkaJs = ({ name, partitions, replication, configs }: TopicSpec) => ({
  topic: name,
  numPartitions: partitions,
  replicationFactor: replication,
  configEntries: Object.entries(configs).map(([configName, value]) => ({ name: configName, value })),
})
