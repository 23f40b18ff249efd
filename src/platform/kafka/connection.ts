import { Kafka, type KafkaConfig, logLevel } from 'kafkajs'
import type { Logger } from '../log.ts'
import { leaveOutAborted } from './kafkajs/kafkajs-aborted.ts'
import { readAllBatches } from './kafkajs/kafkajs-batches.ts'
import { socketsUntil } from './kafkajs/kafkajs-ended.ts'
import { logCreator } from './kafkajs/kafkajs-log.ts'
import { keepPartitionsWithoutLeader } from './kafkajs/kafkajs-metadata.ts'
import { goOnToTheNextBroker } from './kafkajs/kafkajs-seed.ts'
import { stopNegativeTimers } from './kafkajs/kafkajs-timers.ts'

export type KafkaConnection = {
  /** host:port of some brokers; the others are found through them. */
  brokers: string[]
  clientId: string
} & Pick<KafkaConfig, 'ssl' | 'sasl' | 'connectionTimeout' | 'requestTimeout' | 'socketFactory'>

/**
 * KafkaJS, tuned for a service that keeps trying: nothing is connected yet. `ended`: from then on it has no connection, and
 * opens none, whatever was still asked of it.
 */
export function kafkaFor(connection: KafkaConnection, log: Logger, ended: AbortSignal): Kafka {
  readAllBatches()
  stopNegativeTimers()
  keepPartitionsWithoutLeader()
  leaveOutAborted()
  goOnToTheNextBroker()
  return new Kafka({
    connectionTimeout: 5_000,
    requestTimeout: 30_000,
    // A broker that is frozen, or a connection that is open at this end alone, never answers.
    enforceRequestTimeout: true,
    ...connection,
    socketFactory: socketsUntil(ended, connection.socketFactory),
    retry: { initialRetryTime: 100, maxRetryTime: 3_000, retries: 6 },
    logLevel: logLevel.INFO,
    logCreator: logCreator(log),
  })
}
