import { Kafka, type KafkaConfig, logLevel } from 'kafkajs'
import type { Logger } from '../log.ts'
import { socketsUntil } from './kafkajs/kafkajs-ended.ts'
import { logCreator } from './kafkajs/kafkajs-log.ts'
import { patchKafkajs } from './kafkajs/patch-kafkajs.ts'

export type KafkaConnection = {
  /** host:port of some brokers; KafkaJS finds the others through them. */
  brokers: string[]
  clientId: string
} & Pick<KafkaConfig, 'ssl' | 'sasl' | 'connectionTimeout' | 'requestTimeout' | 'socketFactory'>

/** With an answer timeout of half a minute, a silent broker takes minutes. */
const RETRIES = 6

/**
 * KafkaJS, tuned for a service that keeps trying; it connects nothing yet. Once `ended` is aborted, it has no
 * connection and opens none, even for requests that are still pending. `retries`: also of connecting, which ignores those of a
 * producer or admin client.
 */
export function kafkaFor(
  connection: KafkaConnection,
  log: Logger,
  ended: AbortSignal,
  retries = RETRIES,
): Kafka {
  patchKafkajs()
  return new Kafka({
    connectionTimeout: 5_000,
    requestTimeout: 30_000,
    // A frozen broker, or a connection that is open at this end only, never answers.
    enforceRequestTimeout: true,
    ...connection,
    socketFactory: socketsUntil(ended, connection.socketFactory),
    retry: { initialRetryTime: 100, maxRetryTime: 3_000, retries },
    logLevel: logLevel.INFO,
    logCreator: logCreator(log),
  })
}

/** The same connection, with another of its brokers first. */
export function beginningAt(place: number, connection: KafkaConnection): KafkaConnection {
  const { brokers } = connection
  const first = place % brokers.length
  return { ...connection, brokers: [...brokers.slice(first), ...brokers.slice(0, first)] }
}
