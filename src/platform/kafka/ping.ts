import type { Logger } from '../log.ts'
import { type KafkaConnection, kafkaFor } from './connection.ts'

const ANSWER_WITHIN_MS = 3_000

export interface KafkaPing {
  /** Resolves when a broker answers, rejects when none does within some seconds. One at a time. */
  ping(): Promise<void>
  close(): Promise<void>
}

/** Asks Kafka again and again whether it is there. After a failure the next question goes over a new connection. */
export function kafkaPing(connection: KafkaConnection, log: Logger): KafkaPing {
  const make = () => {
    const ended = new AbortController()
    const kafka = kafkaFor({ ...connection, requestTimeout: ANSWER_WITHIN_MS }, log, ended.signal)
    const admin = kafka.admin({ retry: { retries: 0 } })
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
        // On a connection without an answer it would take its time.
        asked.end().catch((cause: unknown) => log.debug({ err: cause }, 'Kafka client did not disconnect'))
        throw error
      }
    },
    async close() {
      await client?.end()
    },
  }
}
