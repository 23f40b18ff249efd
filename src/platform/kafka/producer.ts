import { setTimeout as delay } from 'node:timers/promises'
import kafkajs, { Partitioners, type Producer, type TopicMessages } from 'kafkajs'
import { ExpectedFailure } from '../expected-failure.ts'
import type { Logger } from '../log.ts'
import { crashPoint, type PublisherName } from '../running/crash-points.ts'
import { type KafkaConnection, kafkaFor } from './connection.ts'
import type { OutgoingRecord } from './records.ts'

export interface Publisher {
  /**
   * Resolves once all in-sync replicas have every record. RefusedByKafka: they have every record but those that it
   * names. When it throws anything else, some may be there and some not: publish all again. Records of one key keep
   * their order within a call, and may be repeated in it; a caller that needs order between calls waits for each. `answered` is called
   * with every answer of Kafka's on the way.
   */
  publish(records: readonly OutgoingRecord[], answered?: () => void): Promise<void>
  close(): Promise<void>
}

/** Kafka's own names for what is wrong with a message, and not with Kafka. */
const REFUSALS = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE', 'INVALID_RECORD', 'CORRUPT_MESSAGE'])

export type MessageRefusal = { record: OutgoingRecord; reason: string }

/** Kafka refuses these records, each by itself, and would refuse them again. */
export class RefusedByKafka extends ExpectedFailure {
  readonly refused: readonly MessageRefusal[]

  constructor(refused: readonly MessageRefusal[]) {
    const about = [...new Set(refused.map(({ record, reason }) => `${record.topic} (${reason})`))]
    super(
      `Kafka refuses ${refused.length} messages on ${about.join(', ')}: raise max.message.bytes of the topic, or see what it demands of messages`,
    )
    this.refused = refused
  }
}

/**
 * Brokers refuse a batch of over 1 MB (`message.max.bytes`), and KafkaJS sends one per partition, so a call
 * is cut into requests of less than that even if all of it goes to one partition.
 */
const MAX_REQUEST_BYTES = 768 * 1024
const RECORD_OVERHEAD = 64

const RETRIES = 6
/** A try at a silent broker takes half a minute: whoever publishes hears of it before another one. */
const TRY_FOR_MS = 30_000

/**
 * Not idempotent: KafkaJS's idempotent producer may have one request in flight only, and consumers of ours
 * recognise a repeat by its event id. Connects with the first call. `name` is that of its crash points.
 */
export function createPublisher(name: PublisherName, connection: KafkaConnection, log: Logger): Publisher {
  let current: Promise<ProducerClient> | undefined
  let connects = 0

  const connected = (): Promise<ProducerClient> => {
    current ??= connect(beginningAt(connects++, connection), log).catch((error: unknown) => {
      current = undefined
      throw error
    })
    return current
  }

  const letGo = async (failed: ProducerClient): Promise<void> => {
    if ((await current) === failed) current = undefined
    // Waits for what others have sent through it.
    void failed.end().catch(() => undefined)
  }

  /**
   * Each try is a send of everything: KafkaJS's own retry (2.2.4; its pull request 1798) sends nothing more to a
   * broker that has answered, so that a partition that moves there during the send is forgotten, and the send
   * succeeds. And each goes through a new producer that begins at another broker: one whose request was not
   * answered goes on believing that the same broker leads, for minutes, and never gets past a first broker that
   * takes connections and does not answer.
   */
  async function send(records: readonly OutgoingRecord[]): Promise<void> {
    const topicMessages = byTopic(records)
    const began = performance.now()
    for (let failures = 0; ; failures++) {
      const client = await connected()
      try {
        await client.producer.sendBatch({ acks: -1, topicMessages })
        return
      } catch (error) {
        if (refusalIn(error) !== null) throw error
        // What may be tried again comes as this, also after no retry.
        if (!(error instanceof kafkajs.KafkaJSNumberOfRetriesExceeded)) throw error
        await letGo(client)
        if (failures === RETRIES || performance.now() - began > TRY_FOR_MS) throw error
        await delay(Math.min(3_000, 100 * 2 ** failures))
      }
    }
  }

  /** What Kafka refuses is halved down to the single record, so that one takes no other along. */
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
      await (await current?.catch(() => undefined))?.end()
    },
  }
}

/**
 * A publisher for each topic: what is wrong with one topic, such as a partition without a leader, makes its producer
 * fail, and none that others use.
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

function beginningAt(place: number, connection: KafkaConnection): KafkaConnection {
  const { brokers } = connection
  const first = place % brokers.length
  return { ...connection, brokers: [...brokers.slice(first), ...brokers.slice(0, first)] }
}

type ProducerClient = { producer: Producer; end(): Promise<void> }

async function connect(connection: KafkaConnection, log: Logger): Promise<ProducerClient> {
  const ended = new AbortController()
  const producer = kafkaFor(connection, log, ended.signal).producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    allowAutoTopicCreation: false,
    retry: { retries: 0 },
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

/** Null: the error says nothing against the messages. KafkaJS hands on the broker's error, or names it as a cause. */
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
  for (const name in headers)
    for (const each of [headers[name] ?? ''].flat()) bytes += name.length + each.length + 4
  return bytes
}
