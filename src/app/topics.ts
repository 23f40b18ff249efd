import type { Config } from '../config/config.ts'
import { isCompacted, topicNames } from '../messages/topics.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import { connectAdmin, type TopicSpec } from '../platform/kafka/admin.ts'
import type { KafkaConnection } from '../platform/kafka/connection.ts'
import { type Logger, silentLogger } from '../platform/log.ts'
import { pause } from '../platform/running/lifecycle.ts'

const KAFKA_WITHIN_MS = 5_000

/**
 * Without its topics payoutd does nothing although every check passes, and a compacted topic deletes commands:
 * rejects and names the topic. An unreachable Kafka does not stop the start: it comes back, and callbacks and the
 * gateway do not need it.
 */
export async function requireTopics({ kafka, topicPrefix }: Config, log: Logger): Promise<void> {
  const topics = topicNames(topicPrefix)
  const names = Object.values(topics)
  const over = new AbortController()
  const found = await Promise.race([
    topicsOf(kafka, names).catch((error: unknown) => {
      log.warn({ err: error }, 'cannot read the topics from Kafka, continuing without')
    }),
    pause(KAFKA_WITHIN_MS, over.signal),
  ])
  over.abort()
  if (!found) return
  const missing = names.filter((name) => !found.some((topic) => topic.name === name))
  if (missing.length > 0)
    throw new ExpectedFailure(
      `topics are missing on Kafka at ${kafka.brokers.join(', ')}: ${missing.join(', ')}: run payoutd migrate, which makes them`,
    )
  if (found.some((topic) => topic.name === topics.commands && isCompacted(topic)))
    throw new ExpectedFailure(
      `Kafka compacts ${topics.commands}: it drops commands that nobody has read, and tells nobody. ` +
        'Set its cleanup.policy to delete (kafka-configs), and compare what upstream sent with payoutd payout list',
    )
}

async function topicsOf(connection: KafkaConnection, names: readonly string[]): Promise<TopicSpec[]> {
  const admin = await connectAdmin(connection, silentLogger)
  try {
    return await admin.describeTopics(names)
  } finally {
    await admin.close()
  }
}
