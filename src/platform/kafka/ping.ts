import type { Logger } from '../log.ts'
import { waitFor } from '../running/lifecycle.ts'
import { beginningAt, type KafkaConnection, kafkaFor } from './connection.ts'

const ANSWER_WITHIN_MS = 3_000
/** One silent broker takes five seconds. The next ping begins at the next broker. */
const PATIENCE_MS = 6_000
const GOODBYE_MS = 1_000

export interface KafkaPing {
  /** Resolves when a broker answers, rejects if none does within a few seconds. One at a time. */
  ping(): Promise<void>
  close(): Promise<void>
}

/** Asks Kafka repeatedly whether it is there. After a failure the next ping goes over a new connection. */
export function kafkaPing(connection: KafkaConnection, log: Logger): KafkaPing {
  let made = 0
  const make = () => {
    const ended = new AbortController()
    const { brokers } = connection
    const place = { ...beginningAt(made++, connection), requestTimeout: ANSWER_WITHIN_MS }
    const admin = kafkaFor(place, log, ended.signal, brokers.length - 1).admin()
    return { admin, end: () => admin.disconnect().finally(() => ended.abort()) }
  }
  let client: ReturnType<typeof make> | undefined
  return {
    async ping() {
      const asked = client ?? make()
      client = asked
      try {
        await inTime(asked.admin.connect().then(() => asked.admin.describeCluster()))
      } catch (error) {
        client = undefined
        // A connection without an answer takes a while to end.
        asked.end().catch((cause: unknown) => log.debug({ err: cause }, 'Kafka client did not disconnect'))
        throw error
      }
    },
    async close() {
      await waitFor(client?.end() ?? Promise.resolve(), GOODBYE_MS)
    },
  }
}

async function inTime(answer: Promise<unknown>): Promise<void> {
  let isThere = false
  const answered = answer.then(() => {
    isThere = true
  })
  await waitFor(answered, PATIENCE_MS)
  if (isThere) return
  answered.catch(() => undefined)
  throw new Error(`no broker has answered within ${PATIENCE_MS} ms`)
}
