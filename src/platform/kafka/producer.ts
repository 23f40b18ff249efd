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

/**
 * Not idempotent: KafkaJS's idempotent producer may have one request in flight only, and consumers of ours
 * recognise a repeat by its event id. Connects with the first call. `name` is that of its crash points.
 */
export function createPublisher(name: string, connection: KafkaConnection, log: Logger): Publisher {
  const producer: Producer = kafkaFor(connection, log).producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    allowAutoTopicCreation: false,
    retry: { retries: 0 },
  })
  let connected: Promise<void> | undefined
  const connect = () => {
    connected ??= producer.connect().catch((error: unknown) => {
      connected = undefined
      throw error
    })
    return connected
  }
  return {
    async publish(records) {
      await connect()
      for (const request of requests(records)) {
        crashPoint('before publish', name)
        await send(producer, request)
        crashPoint('after publish', name)
      }
    },
    async close() {
      await connected?.catch(() => undefined)
      await producer.disconnect()
    },
  }
}

/**
 * KafkaJS's own retry (2.2.4; its pull request 1798) sends nothing more to a broker that has answered. A
 * partition that moves there during the send is forgotten, and the send succeeds. So each try is a send of
 * everything.
 */
async function send(producer: Producer, topicMessages: TopicMessages[]): Promise<void> {
  for (let failures = 0; ; failures++) {
    try {
      await producer.sendBatch({ acks: -1, topicMessages })
      return
    } catch (error) {
      // What may be tried again comes as this, also after no retry.
      if (!(error instanceof kafkajs.KafkaJSNumberOfRetriesExceeded) || failures === RETRIES) throw error
      await delay(Math.min(3_000, 100 * 2 ** failures))
    }
  }
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
