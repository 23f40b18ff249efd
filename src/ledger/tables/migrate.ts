import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type MigrationBuilder, PG_MIGRATE_LOCK_ID, runner } from 'node-pg-migrate'
import type pg from 'pg'
import { ExpectedFailure } from '../../platform/expected-failure.ts'
import type { Logger } from '../../platform/log.ts'
import { sqlState, withSession } from '../../platform/postgres/postgres.ts'
import { migrationsDir, readMigration } from './migrations.ts'

/** What a migration locks it gets within this time, or lets those go first who wait behind it. */
const LOCK_WITHIN_MS = 1_000
const TRIES = 60
const LOCK_NOT_AVAILABLE = '55P03'
const TURN_EVERY_MS = 100

/**
 * Brings the database at `url` to the newest schema. Several processes may do it at once: they take turns. Each
 * migration is a transaction of its own, and waits for a lock only briefly and again, so that nobody waits long behind
 * it. `last`: none after it; null: all. Returns the names of the migrations that were run; empty when nothing was missing.
 */
export const migrate = (url: string, log: Logger, last: string | null = null): Promise<string[]> =>
  // With a URL the library would leave its connection closing behind it.
  withSession(url, (session) => migrateOver(session, log, last))

/** The same over a session that is open already. */
export async function migrateOver(
  session: pg.Client,
  log: Logger,
  last: string | null = null,
): Promise<string[]> {
  await session.query(`set timezone = 'UTC'; set lock_timeout = ${LOCK_WITHIN_MS}`)
  await takeTurn(session)
  const before = new Set(await doneMigrations(session))
  for (let tries = 1; !(await isUp(session, log, last)); tries++) {
    if (tries === TRIES) {
      throw new ExpectedFailure(
        'others keep a table locked, so that not all migrations could be run: ' +
          'repeat payoutd migrate when they are done (pg_stat_activity tells who they are)',
      )
    }
    await delay(LOCK_WITHIN_MS)
  }
  return (await doneMigrations(session)).filter((name) => !before.has(name))
}

/** Asked for again and again: a session that waits in one statement would hold up the making of indexes. */
async function takeTurn(session: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await session.query<{ mine: boolean }>(
      `select pg_try_advisory_lock(${PG_MIGRATE_LOCK_ID}) as mine`,
    )
    if (rows[0]?.mine) return
    await delay(TURN_EVERY_MS)
  }
}

/** Runs what is missing. False: a lock was not to be had. */
async function isUp(session: pg.Client, log: Logger, last: string | null): Promise<boolean> {
  const logger = {
    info: () => undefined,
    // Of a migration without a transaction, too, which means to have none.
    warn: (text: string) => log.debug(text),
    // The error is thrown as well.
    error: (text: string) => log.debug(text),
  }
  try {
    await runner({
      dbClient: session,
      dir: migrationsDir,
      direction: 'up',
      migrationsTable: 'migrations',
      migrationLoaderStrategies: [{ extensions: ['.sql'], loader: upTo(last) }],
      noLock: true,
      logger,
    })
    return true
  } catch (error) {
    if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error
    await session.query('rollback')
    return false
  }
}

/** The library's own gives the server a whole file at once, which is a transaction. */
const upTo = (last: string | null) => (files: string[]) =>
  Promise.all(
    files
      .filter((file) => last === null || path.basename(file, '.sql') <= last)
      .map(async (file) => {
        const { statements, inTransaction } = await readMigration(file)
        const up = (migration: MigrationBuilder) => {
          if (!inTransaction) migration.noTransaction()
          for (const statement of statements) migration.sql(statement)
        }
        return { id: file, filePaths: [file], actions: { up, down: false as const } }
      }),
  )

async function doneMigrations(session: pg.Client): Promise<string[]> {
  const { rows: table } = await session.query(`select to_regclass('migrations') as name`)
  if (table[0]?.name === null) return []
  const { rows } = await session.query<{ name: string }>('select name from migrations order by name')
  return rows.map(({ name }) => name)
}
