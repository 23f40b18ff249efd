import { freshDir, OTHERS_GIVEN } from '../devkit/local/servers/testing.ts'
import { migrate } from '../src/ledger/tables/migrate.ts'
import { silentLogger } from '../src/platform/log.ts'
import { connectDatabase } from '../src/platform/postgres/postgres.ts'
import type { Owner, TestDatabase } from './database.ts'

/**
 * A database like `freshDatabase`'s, on its own server that loses no commit in a power cut: doctor finds nothing
 * wrong with it. The shared test server may lose some, which makes it fast.
 */
export async function durableDatabase(
  owner: Owner,
  { migrated } = { migrated: true },
): Promise<TestDatabase> {
  const { databaseUrl: url } = await freshDir(owner).start({ given: OTHERS_GIVEN })
  if (migrated) await migrate(url, silentLogger)
  const db = connectDatabase({ url, connections: 4, applicationName: 'payoutd-test' })
  owner.after(() => db.close())
  return { url, db }
}
