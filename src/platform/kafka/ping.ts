import type { Logger } from '../log.ts'
import { type KafkaConnection, kafkaFor } from './connection.ts'

const ANSWER_WITHIN_MS = 3_000

export interface KafkaPing {
  /** Resolves when a broker answers, rejects if none does within a few seconds. One at a time. */
  ping(): Promise<void>
  close(): Promise<void>
}

/** Asks Kafka repeatedly whether it is there. After a failure the next ping goes over a new connection. */
export function kafkaPing(connection: KafkaConnection, log: Logger): KafkaPing {
  const make = () => {
    const ended = new AbortController()
    // One try for each broker.
    const retries = connection.brokers.length - 1
    const kafka = kafkaFor({ ...connection, requestTimeout: ANSWER_WITHIN_MS }, log, ended.signal, retries)
    const admin = kafka.admin()
    return { admin, end: () => admin.disconnect().finally(() => ended.abort()) }
  }
  let client: ReturnType<typeof make> | undefined
  return {
    async ping() {
      const asked = client ?? make()
      client = asked
      try {
        await asked.admin.connect()
        await asked.admin.describeCluster()
      } catch (error) {
        client = undefined
        // A connection without an answer takes a while to end.
        asked.end().catch((cause: unknown) => log.debug({ err: cause }, 'Kafka client did not disconnect'))
        throw error
      }
    },
    async close() {
      await client?.end()
    },
  }
}
