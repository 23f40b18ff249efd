import { Command } from 'commander'
import { type Config, readConfig } from '../config/config.ts'
import { migrate } from '../ledger/migrate.ts'
import { schemaSubjects, topicNames, topicSpecs } from '../ledger/topics.ts'
import { connectAdmin } from '../platform/kafka/admin.ts'
import { openCodec } from '../platform/kafka/codec.ts'
import { connectRegistry } from '../platform/kafka/registry.ts'
import { createLogger, type Logger } from '../platform/log.ts'

export const migrateCommand = new Command('migrate')
  .description(
    'bring tables, topics and schemas up to date; safe to repeat, and to run several times at once',
  )
  .action(async () => {
    const config = readConfig(process.env)
    const done = await migrateAll(
      config,
      createLogger({ name: 'payoutd', level: config.logLevel, destination: 2 }),
    )
    console.log(done.tables.length > 0 ? `tables: ran ${done.tables.join(', ')}` : 'tables: nothing to do')
    console.log(
      done.topics.length > 0 ? `topics: created ${done.topics.join(', ')}` : 'topics: nothing to do',
    )
    console.log(`schemas: ${done.schemas} registered`)
  })

/** Tables, topics and schemas; returns what was new of each. Throws with the reason of whoever refuses. */
export async function migrateAll(
  config: Config,
  log: Logger,
): Promise<{ tables: string[]; topics: string[]; schemas: number }> {
  const topics = topicNames(config.topicPrefix)
  const subjects = schemaSubjects(topics)
  const tables = await migrate(config.databaseUrl, log)
  const admin = await connectAdmin(config.kafka, log)
  try {
    const created = await admin.createTopics(topicSpecs(topics, config.topics))
    await openCodec(connectRegistry(config.registry), subjects)
    return { tables, topics: created, schemas: subjects.length }
  } finally {
    await admin.close()
  }
}
