import type { Decided } from '../../domain/payout/resolve.ts'
import { schemaSubjects, topicNames, topicSpecs } from '../../messages/topics.ts'
import { connectAdmin } from '../../platform/kafka/admin.ts'
import type { KafkaConnection } from '../../platform/kafka/connection.ts'
import type { Logger } from '../../platform/log.ts'
import { connectDatabase } from '../../platform/postgres/postgres.ts'
import { registerSchemas } from '../../platform/registry/codec.ts'
import { connectRegistry, type RegistryConnection } from '../../platform/registry/registry.ts'
import { moveTopics, noteOwnTopics } from '../own-topics.ts'
import { migrate } from './migrate.ts'

/** The part of the configuration that says where payoutd stores and publishes. */
type MigrationTargets = {
  databaseUrl: string
  kafka: KafkaConnection
  registry: RegistryConnection
  topicPrefix: string
  topics: { partitions: number; replication: number }
}

/**
 * Creates tables, topics and schemas; returns what was new of each. Throws the error of the server that refuses, and an
 * ExpectedFailure before it creates any topic if the ledger has others, unless somebody `moved` it: then these are its topics from
 * now on.
 */
export async function migrateAll(
  places: MigrationTargets,
  log: Logger,
  moved?: Decided,
): Promise<{ tables: string[]; topics: string[]; schemas: number }> {
  const topics = topicNames(places.topicPrefix)
  const subjects = schemaSubjects(topics)
  const tables = await migrate(places.databaseUrl, log)
  const db = connectDatabase({ url: places.databaseUrl, connections: 1, applicationName: 'payoutd migrate' })
  try {
    if (moved) await moveTopics(db, places.topicPrefix, moved)
    await noteOwnTopics(db, places.topicPrefix)
  } finally {
    await db.close()
  }
  const admin = await connectAdmin(places.kafka, log)
  try {
    const created = await admin.createTopics(topicSpecs(topics, places.topics))
    await registerSchemas(connectRegistry(places.registry), subjects)
    return { tables, topics: created, schemas: subjects.length }
  } finally {
    await admin.close()
  }
}
