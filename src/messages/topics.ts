import { fileURLToPath } from 'node:url'
import type { TopicSpec } from '../platform/kafka/admin.ts'
import type { Compatibility, SchemaSubject } from '../platform/registry/registry.ts'
import { readSchemas } from '../platform/registry/schemas.ts'

/** The names of the topics that other systems build against; `prefix` separates several payoutd on one Kafka. */
export type Topics = {
  commands: string
  events: string
  results: string
  deadLetters: string
  anomalies: string
  payinResults: string
}

export const topicNames = (prefix = ''): Topics => ({
  commands: `${prefix}payout.commands`,
  events: `${prefix}payout.events`,
  results: `${prefix}payout.results`,
  deadLetters: `${prefix}payout.commands.dlq`,
  anomalies: `${prefix}payout.anomalies`,
  payinResults: `${prefix}payin.results`,
})

const DAY_MS = 86_400_000
const RETENTION_DAYS: Record<keyof Topics, number> = {
  commands: 14,
  events: 14,
  results: 90,
  deadLetters: 90,
  anomalies: 90,
  payinResults: 90,
}

/**
 * How long after its creation a command can still ask for its payment: it may be read late, then replayed late from the dead
 * letters, and read late again. payoutd remembers for as long what forbids a payment.
 */
export const COMMANDS_ASK_DAYS =
  RETENTION_DAYS.commands + RETENTION_DAYS.deadLetters + RETENTION_DAYS.commands

/** Kafka's default. Our largest message is a dead letter of about 350 kB. */
const MAX_MESSAGE_BYTES = 1_048_588

/**
 * No message leaves a topic, or loses its place, early: not through another message of its key (compaction), the topic's size, an
 * old timestamp of its writer, or a leader that lacks it.
 */
const FORGETS_NOTHING_EARLIER = {
  'cleanup.policy': 'delete',
  'retention.bytes': '-1',
  'message.timestamp.type': 'LogAppendTime',
  'unclean.leader.election.enable': 'false',
}

/** The topics that `payoutd migrate` creates. In production: replication 3, and 2 replicas must have each message. */
export function topicSpecs(topics: Topics, size: { partitions: number; replication: number }): TopicSpec[] {
  return (Object.keys(RETENTION_DAYS) as (keyof Topics)[]).map((role) => ({
    name: topics[role],
    ...size,
    configs: {
      ...FORGETS_NOTHING_EARLIER,
      'max.message.bytes': String(MAX_MESSAGE_BYTES),
      'retention.ms': String(RETENTION_DAYS[role] * DAY_MS),
      'min.insync.replicas': String(Math.max(1, size.replication - 1)),
    },
  }))
}

/** Compaction leaves gaps that look like those of transactions, so nobody notices a message lost in them. */
export const isCompacted = ({ configs }: TopicSpec): boolean =>
  configs['cleanup.policy']?.includes('compact') ?? false

/**
 * Every record of `schemas/` on its topic. payoutd must be able to read what every older writer wrote; every older reader must be
 * able to read what payoutd publishes.
 */
export function schemaSubjects(topics: Topics): SchemaSubject[] {
  const schemas = readSchemas(fileURLToPath(new URL('../../schemas', import.meta.url)))
  const on = (topic: string, compatibility: Compatibility, ...names: string[]) =>
    names.map((name): SchemaSubject => {
      const file = schemas.get(name)
      if (!file) throw new Error(`schemas/${name}.avsc is missing`)
      return { topic, ...file, compatibility }
    })
  return [
    ...on(
      topics.commands,
      'BACKWARD_TRANSITIVE',
      'PayoutRequested',
      'PayoutCancelRequested',
      'PayoutBatchDeclared',
    ),
    ...on(topics.events, 'FULL_TRANSITIVE', 'PayoutEvent'),
    ...on(topics.results, 'FULL_TRANSITIVE', 'PayoutResult', 'PayoutReversed'),
    ...on(topics.anomalies, 'FULL_TRANSITIVE', 'PayoutAnomaly'),
    ...on(topics.payinResults, 'FULL_TRANSITIVE', 'PayinResult'),
  ]
}
