import type { Config } from '../config/config.ts'
import { demandOwnTopics } from '../ledger/own-topics.ts'
import { demandSchema } from '../ledger/tables/schema.ts'
import { connectDatabase, type Database } from '../platform/postgres/postgres.ts'

/** For a search without an index, and for counting whole tables. */
const SEARCH_MS = 120_000
/** How long a command waits for a lock. payoutd itself keeps none for so long. */
export const LOCKS_MS = 5_000

/**
 * A database for one command, closed when `work` has ended. A single statement may take long; a transaction, whose locks others
 * wait for, no longer than one of `serve`. Throws an ExpectedFailure if the tables have another version, or other topics than
 * those of the settings.
 */
export async function withDatabase<T>(
  config: Pick<Config, 'databaseUrl' | 'topicPrefix'>,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  const options = { url: config.databaseUrl, connections: 1, applicationName: 'payoutd command' }
  const acting = connectDatabase({ ...options, lockTimeoutMs: LOCKS_MS })
  const searching = connectDatabase({ ...options, transactionTimeoutMs: SEARCH_MS })
  const db: Database = { ...searching, transaction: acting.transaction }
  try {
    await demandSchema(db)
    await demandOwnTopics(db, config.topicPrefix)
    return await work(db)
  } finally {
    await searching.close()
    await acting.close()
  }
}
