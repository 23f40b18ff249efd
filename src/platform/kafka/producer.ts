import { setTimeout as delay } from 'node:timers/promises'
import kafkajs, { type Producer, type TopicMessages } from 'kafkajs'
import { ExpectedFailure } from '../expected-failure.ts'
import type { Logger } from '../log.ts'
import { crashPoint, type PublisherName } from '../running/crash-points.ts'
import { waitFor } from '../running/lifecycle.ts'
import { beginningAt, type KafkaConnection, kafkaFor } from './connection.ts'
import { partitioner } from './partitioner.ts'
import type { OutgoingRecord } from './records.ts'

export interface Publisher {
  /**
   * Resolves once all in-sync replicas have every record. RefusedByKafka: they have every record except those it
   * names. On any other error some records may be there and some not: publish all again. Records of one key keep
   * their order within a call and may be repeated in it. A caller that needs order between calls waits for each.
   * `answered` is called for every answer of Kafka's on the way.
   */
  publish(records: readonly OutgoingRecord[], answered?: () => void): Promise<void>
  /** Waits a moment for what is under way. */
  close(): Promise<void>
}

/**
 * Kafka's error names that blame a message, not Kafka. CORRUPT_MESSAGE is not among them: a bit turned on the way, and the
 * next try succeeds.
 */
const REFUSALS = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE', 'INVALID_RECORD'])

export type MessageRefusal = { record: OutgoingRecord; reason: string }

/** Kafka refuses each of these records on its own, and would refuse it again. */
export class RefusedByKafka extends ExpectedFailure {
  readonly refused: readonly MessageRefusal[]

  constructor(refused: readonly MessageRefusal[]) {
    const about = [...new Set(refused.map(({ record, reason }) => `${record.topic} (${reason})`))]
    super(
      `Kafka refuses ${refused.length} messages on ${about.join(', ')}: raise max.message.bytes of the topic, or check what else it requires`,
    )
    this.refused = refused
  }
}

/**
 * Brokers refuse a batch of over 1 MB (`message.max.bytes`), and KafkaJS sends one batch per partition. So each
 * call is split into requests below that size even if all records go to one partition.
 */
const MAX_REQUEST_BYTES = 768 * 1024
const RECORD_OVERHEAD = 64

const RETRIES = 6
/** One try at a silent broker takes half a minute: the caller gets the error before another try. */
const TRY_FOR_MS = 30_000
/** How long a publisher that closes waits for Kafka, which may be silent. */
const GOODBYE_MS = 5_000

/**
 * Not idempotent: KafkaJS's idempotent producer allows only one request in flight, and our consumers recognize a
 * repeat by its event id. Connects on the first call. `name` is the name of its crash points.
 */
export function createPublisher(name: PublisherName, connection: KafkaConnection, log: Logger): Publisher {
  const closing = new AbortController()
  let current: Promise<ProducerClient> | undefined
  let connects = 0

  const connected = (): Promise<ProducerClient> => {
    current ??= connect(beginningAt(connects++, connection), log, closing.signal).catch((error: unknown) => {
      current = undefined
      throw error
    })
    return current
  }

  const letGo = async (failed: ProducerClient): Promise<void> => {
    if ((await current?.catch(() => undefined)) === failed) current = undefined
    // Waits for what other callers have sent through it.
    void failed.end().catch(() => undefined)
  }

  /**
   * Each try sends everything again: KafkaJS's own retry (2.2.4; its pull request 1798) sends nothing more to a
   * broker that has answered, so it loses a partition that moves there during the send, and reports success. Each
   * try also uses a new producer that begins at another broker: a producer whose request got no answer keeps its
   * old leader for minutes, and never gets past a first broker that accepts connections but does not answer.
   */
  async function send(records: readonly OutgoingRecord[]): Promise<void> {
    const topicMessages = byTopic(records)
    const began = performance.now()
    for (let failures = 0; ; failures++) {
      let client: ProducerClient | undefined
      try {
        client = await connected()
        await client.producer.sendBatch({ acks: -1, topicMessages })
        return
      } catch (error) {
        if (refusalIn(error) !== null) throw error
        if (closing.signal.aborted || !isPassing(error)) throw error
        if (client) await letGo(client)
        if (failures === RETRIES || performance.now() - began > TRY_FOR_MS) throw error
        await delay(Math.min(3_000, 100 * 2 ** failures))
      }
    }
  }

  /** Halves a refused batch down to single records, so that a refused record does not keep others from Kafka. */
  async function deliver(
    records: readonly OutgoingRecord[],
    answered: () => void,
  ): Promise<MessageRefusal[]> {
    try {
      await send(records)
      answered()
      return []
    } catch (error) {
      const reason = refusalIn(error)
      if (reason === null) throw error
      answered()
      if (records.length === 1) return records.map((record) => ({ record, reason }))
      const middle = Math.ceil(records.length / 2)
      return [
        ...(await deliver(records.slice(0, middle), answered)),
        ...(await deliver(records.slice(middle), answered)),
      ]
    }
  }

  return {
    async publish(records, answered = () => undefined) {
      const refused: MessageRefusal[] = []
      for (const request of requests(records)) {
        crashPoint('before publish', name)
        refused.push(...(await deliver(request, answered)))
        crashPoint('after publish', name)
      }
      if (refused.length > 0) throw new RefusedByKafka(refused)
    },
    async close() {
      const ended = (async () => (await current)?.end())()
      await waitFor(ended, GOODBYE_MS).catch(() => undefined)
      closing.abort()
    },
  }
}

/**
 * One publisher per topic: a fault of one topic, such as a partition without a leader, makes only that topic's
 * producer fail.
 */
export class Publishers {
  readonly #create: () => Publisher
  readonly #byTopic = new Map<string, Publisher>()

  constructor(create: () => Publisher) {
    this.#create = create
  }

  of(topic: string): Publisher {
    const made = this.#byTopic.get(topic) ?? this.#create()
    this.#byTopic.set(topic, made)
    return made
  }

  async close(): Promise<void> {
    await Promise.all([...this.#byTopic.values()].map((publisher) => publisher.close()))
  }
}

type ProducerClient = { producer: Producer; end(): Promise<void> }

async function connect(
  connection: KafkaConnection,
  log: Logger,
  closing: AbortSignal,
): Promise<ProducerClient> {
  const ended = new AbortController()
  const producer = kafkaFor(connection, log, AbortSignal.any([ended.signal, closing]), 0).producer({
    createPartitioner: partitioner,
    allowAutoTopicCreation: false,
  })
  try {
    await producer.connect()
  } catch (error) {
    ended.abort()
    throw error
  }
  return {
    producer,
    end: () => producer.disconnect().finally(() => ended.abort()),
  }
}

/** KafkaJS wraps retriable errors even if it did not retry, and those of connecting anew once more. */
const isPassing = (error: unknown): boolean =>
  error instanceof kafkajs.KafkaJSNumberOfRetriesExceeded ||
  (error instanceof kafkajs.KafkaJSNonRetriableError &&
    error.cause instanceof kafkajs.KafkaJSError &&
    error.cause.retriable)

/** Null: the error does not blame the messages. KafkaJS passes on the broker's error, or has it as cause. */
function refusalIn(error: unknown): string | null {
  if (!(error instanceof Error)) return null
  const type = 'type' in error ? String(error.type) : ''
  return REFUSALS.has(type) ? type : refusalIn(error.cause)
}

function* requests(records: readonly OutgoingRecord[]): Generator<OutgoingRecord[]> {
  let request: OutgoingRecord[] = []
  let bytes = 0
  for (const record of records) {
    const size = sizeOf(record)
    if (bytes > 0 && bytes + size > MAX_REQUEST_BYTES) {
      yield request
      request = []
      bytes = 0
    }
    bytes += size
    request.push(record)
  }
  if (request.length > 0) yield request
}

function byTopic(records: readonly OutgoingRecord[]): TopicMessages[] {
  const topics = new Map<string, TopicMessages>()
  for (const { topic, key, value, headers } of records) {
    const messages = topics.get(topic)?.messages ?? []
    if (messages.length === 0) topics.set(topic, { topic, messages })
    messages.push(headers ? { key, value, headers } : { key, value })
  }
  return [...topics.values()]
}

function sizeOf({ key, value, headers }: OutgoingRecord): number {
  let bytes = RECORD_OVERHEAD + (key?.length ?? 0) + (value?.length ?? 0)
  for (const name in headers) {
    const given = headers[name] ?? ''
    if (!Array.isArray(given)) bytes += name.length + given.length + 4
    else for (const each of given) bytes += name.length + each.length + 4
  }
  return bytes
}
