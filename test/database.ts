import { silentLogger } from '../src/platform/log.ts'
import { connectDatabase, type Database, withSession } from '../src/platform/postgres/postgres.ts'
import {
  drop,
  type EmptiedDatabase,
  freshName,
  giveBack,
  looksOf,
  onServer,
  takeEmptied,
  urlOf,
} from './emptied-databases.ts'

export type TestDatabase = {
  /** For code that connects on its own: a process, `migrate`, a separate role. */
  url: string
  db: Database
}

/** Anything that ends: a test's context, or `{ after }` of `node:test` for a whole file. */
export type Owner = { after(drop: () => Promise<void>): void }

/**
 * Returns a separate database on the server of TEST_DATABASE_URL, with all migrations (or none, for
 * `migrated: false`). At the end it is closed, and passed on to another test or dropped.
 *
 *     test('…', async (t) => { const { db } = await freshDatabase(t) … })
 *     const { db } = await freshDatabase({ after })   // one for all tests of a file
 */
export async function freshDatabase(owner: Owner, { migrated } = { migrated: true }): Promise<TestDatabase> {
  const server = process.env.TEST_DATABASE_URL
  if (!server) throw new Error('TEST_DATABASE_URL is not set: these tests need a running PostgreSQL')
  const { name, looks } = (migrated && (await takeEmptied(server))) || (await create(server, migrated))
  const url = urlOf(server, name)
  const db = connectDatabase({ url, connections: 4, applicationName: 'payoutd-test' })
  owner.after(async () => {
    await db.close()
    await (migrated ? giveBack(server, { name, looks }) : drop(server, name))
  })
  return { url, db }
}

async function create(server: string, migrated: boolean): Promise<EmptiedDatabase> {
  const name = freshName()
  await onServer(server, (session) => session.query(`create database ${name}`))
  if (!migrated) return { name, looks: '' }
  const url = urlOf(server, name)
  // Most find a database that was made before.
  const { migrate } = await import('../src/ledger/tables/migrate.ts')
  await migrate(url, silentLogger)
  return { name, looks: await withSession(url, looksOf) }
}
