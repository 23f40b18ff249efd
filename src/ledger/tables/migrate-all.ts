import type { Decided } from '../../domain/payout/resolve.ts'
import { schemaSubjects, topicNames, topicSpecs } from '../../messages/topics.ts'
import { connectAdmin } from '../../platform/kafka/admin.ts'
import type { KafkaConnection } from '../../platform/kafka/connection.ts'
import type { Logger } from '../../platform/log.ts'
import { connectDatabase } from '../../platform/postgres/postgres.ts'
import { registerSchemas } from '../../platform/registry/codec.ts'
import { connectRegistry, type RegistryConnection } from '../../platform/registry/registry.ts'
import { moveTopics, noteOwnTopics } from '../own-topics.ts'
import { withNotedIds } from '../schema-ids.ts'
import { migrate } from './migrate.ts'
import { demandSchema } from './schema.ts'

/** The part of the configuration that says where payoutd stores and publishes. */
type MigrationTargets = {
  databaseUrl: string
  kafka: KafkaConnection
  registry: RegistryConnection
  topicPrefix: string
  topics: { partitions: number; replication: number }
}

/** Creates tables, topics and schemas; returns what was new of each. Throws as its two parts do. */
export async function migrateAll(
  places: MigrationTargets,
  log: Logger,
): Promise<{ tables: string[]; topics: string[]; schemas: number }> {
  const tables = await migrateLedger(places, log)
  return { tables, ...(await migrateTopics(places, log)) }
}

/**
 * Creates tables; returns the migrations that ran. Throws the error of the server that refuses, and an ExpectedFailure if a newer
 * payoutd has migrated the ledger so that this one no longer works on it, or if the ledger has other topics, unless somebody
 * `moved` it: then these are its topics from now on.
 */
export async function migrateLedger(
  { databaseUrl, topicPrefix }: Pick<MigrationTargets, 'databaseUrl' | 'topicPrefix'>,
  log: Logger,
  moved?: Decided,
): Promise<string[]> {
  const tables = await migrate(databaseUrl, log)
  const db = connectDatabase({ url: databaseUrl, connections: 1, applicationName: 'payoutd migrate' })
  try {
    await demandSchema(db)
    if (moved) await moveTopics(db, topicPrefix, moved)
    await noteOwnTopics(db, topicPrefix)
  } finally {
    await db.close()
  }
  return tables
}

/**
 * Creates topics and registers schemas, whose ids the ledger notes. Throws the error of the server that refuses, and an
 * ExpectedFailure if the registry has lost the noted ones.
 */
export async function migrateTopics(
  { databaseUrl, kafka, registry, topicPrefix, topics }: MigrationTargets,
  log: Logger,
): Promise<{ topics: string[]; schemas: number }> {
  const names = topicNames(topicPrefix)
  const subjects = schemaSubjects(names)
  const admin = await connectAdmin(kafka, log)
  const db = connectDatabase({ url: databaseUrl, connections: 1, applicationName: 'payoutd migrate' })
  try {
    const created = await admin.createTopics(topicSpecs(names, topics))
    await registerSchemas(withNotedIds(connectRegistry(registry), db, log), subjects)
    return { topics: created, schemas: subjects.length }
  } finally {
    await db.close()
    await admin.close()
  }
}
