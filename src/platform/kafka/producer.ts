import { setTimeout as delay } from 'node:timers/promises'
import kafkajs, { Partitioners, type Producer, type TopicMessages } from 'kafkajs'
import { crashPoint } from '../crash-points.ts'
import type { Logger } from '../log.ts'
import { type KafkaConnection, kafkaFor } from './connection.ts'
import type { OutgoingRecord } from './records.ts'

export interface Publisher {
  /**
   * Resolves once all in-sync replicas have every record. When it throws, some may be there and some not:
   * publish all again. Records of one key keep their order within a call; a caller that needs order
   * between calls waits for each.
   */
  publish(records: readonly OutgoingRecord[]): Promise<void>
  close(): Promise<void>
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
export function createPublisher(name: string, connection: KafkaConnection, log: Logger): Publisher {
  let current: Promise<Producer> | undefined
  let connects = 0

  const connected = (): Promise<Producer> => {
    current ??= connect(beginningAt(connects++, connection), log).catch((error: unknown) => {
      current = undefined
      throw error
    })
    return current
  }

  const letGo = async (failed: Producer): Promise<void> => {
    if ((await current) === failed) current = undefined
    // Waits for what others have sent through it.
    void failed.disconnect().catch(() => undefined)
  }

  /**
   * Each try is a send of everything: KafkaJS's own retry (2.2.4; its pull request 1798) sends nothing more to a
   * broker that has answered, so that a partition that moves there during the send is forgotten, and the send
   * succeeds. And each goes through a new producer that begins at another broker: one whose request was not
   * answered goes on believing that the same broker leads, for minutes, and never gets past a first broker that
   * takes connections and does not answer.
   */
  async function send(topicMessages: TopicMessages[]): Promise<void> {
    const began = performance.now()
    for (let failures = 0; ; failures++) {
      const producer = await connected()
      try {
        await producer.sendBatch({ acks: -1, topicMessages })
        return
      } catch (error) {
        // What may be tried again comes as this, also after no retry.
        if (!(error instanceof kafkajs.KafkaJSNumberOfRetriesExceeded)) throw error
        await letGo(producer)
        if (failures === RETRIES || performance.now() - began > TRY_FOR_MS) throw error
        await delay(Math.min(3_000, 100 * 2 ** failures))
      }
    }
  }

  return {
    async publish(records) {
      for (const request of requests(records)) {
        crashPoint('before publish', name)
        await send(request)
        crashPoint('after publish', name)
      }
    },
    async close() {
      await (await current?.catch(() => undefined))?.disconnect()
    },
  }
}

function beginningAt(place: number, connection: KafkaConnection): KafkaConnection {
  const { brokers } = connection
  const first = place % brokers.length
  return { ...connection, brokers: [...brokers.slice(first), ...brokers.slice(0, first)] }
}

async function connect(connection: KafkaConnection, log: Logger): Promise<Producer> {
  const producer = kafkaFor(connection, log).producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    allowAutoTopicCreation: false,
    retry: { retries: 0 },
  })
  await producer.connect()
  return producer
}

function* requests(records: readonly OutgoingRecord[]): Generator<TopicMessages[]> {
  let topics = new Map<string, TopicMessages>()
  let bytes = 0
  for (const record of records) {
    const size = sizeOf(record)
    if (bytes > 0 && bytes + size > MAX_REQUEST_BYTES) {
      yield [...topics.values()]
      topics = new Map()
      bytes = 0
    }
    bytes += size
    const { topic, key, value, headers } = record
    const messages = topics.get(topic)?.messages ?? []
    if (messages.length === 0) topics.set(topic, { topic, messages })
    messages.push(headers ? { key, value, headers } : { key, value })
  }
  if (topics.size > 0) yield [...topics.values()]
}

function sizeOf({ key, value, headers }: OutgoingRecord): number {
  let bytes = RECORD_OVERHEAD + (key?.length ?? 0) + (value?.length ?? 0)
  for (const name in headers) bytes += name.length + (headers[name]?.length ?? 0) + 4
  return bytes
}
