import { Command } from 'commander'
import { readConfig } from '../../config/config.ts'
import type { Decided } from '../../domain/payout/resolve.ts'
import { recordAct } from '../../ledger/acts.ts'
import { grantTo } from '../../ledger/tables/grants.ts'
import { migrateLedger, migrateTopics } from '../../ledger/tables/migrate-all.ts'
import { createLogger } from '../../platform/log.ts'
import { withWho } from '../decision.ts'
import { print } from '../print.ts'
import { withDatabase } from '../with-database.ts'

type MigrateOptions = Decided & { grantTo?: string; moveTopics?: boolean }

export const migrateCommand = withWho(
  new Command('migrate')
    .option(
      '--grant-to <role>',
      'grant this database role only the rights that payoutd serve and the commands need; it must not own the tables',
    )
    .option(
      '--move-topics',
      'from now on the topics with TOPIC_PREFIX are those of this ledger, which had others: stop every payoutd first',
    ),
).action(async ({ by, reason, grantTo: role, moveTopics = false }: MigrateOptions) => {
  const config = readConfig(process.env)
  const log = createLogger({ name: 'payoutd', level: config.logLevel, destination: 2 })
  const tables = await migrateLedger(config, log, moveTopics ? { by, reason } : undefined)
  if (role !== undefined) await grantTo(config.databaseUrl, role)
  const record = (subjects: string[], after: object) =>
    withDatabase(config, (db) =>
      recordAct(db, {
        ...{ by, reason, command: 'migrate' },
        merchantId: null,
        subjects,
        before: null,
        after,
      }),
    )
  // Kafka may be away.
  await record(tables, { grantedTo: role ?? null })
  const { topics, schemas } = await migrateTopics(config, log)
  if (topics.length > 0) await record(topics, {})
  print(tables.length > 0 ? `tables: ran ${tables.join(', ')}` : 'tables: nothing to do')
  print(topics.length > 0 ? `topics: created ${topics.join(', ')}` : 'topics: nothing to do')
  print(`schemas: ${schemas} registered`)
  if (role !== undefined) print(`rights: ${role} has the rights that payoutd needs`)
})
