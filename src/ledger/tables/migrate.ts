import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type MigrationBuilder, PG_MIGRATE_LOCK_ID, runner } from 'node-pg-migrate'
import type pg from 'pg'
import { ExpectedFailure } from '../../platform/expected-failure.ts'
import type { Logger } from '../../platform/log.ts'
import { sqlState } from '../../platform/postgres/faults.ts'
import { withSession } from '../../platform/postgres/postgres.ts'
import { migrationsDir, readMigration } from './migrations.ts'

/** How long a migration waits for a lock before it lets the sessions behind it go first. */
const LOCK_WITHIN_MS = 1_000
const TRIES = 60
const LOCK_NOT_AVAILABLE = '55P03'
const TURN_EVERY_MS = 100

/**
 * Brings the database at `url` to the newest schema. Several processes may do so at once: they take turns. Each migration is a
 * transaction of its own. It waits only briefly for a lock, then tries again, so that no session waits long behind it. `last`:
 * run none after this one; null: run all. Returns the names of the migrations that it ran; empty if nothing was missing.
 */
export const migrate = (url: string, log: Logger, last: string | null = null): Promise<string[]> =>
  // Given a URL, the library would return before it has closed its connection.
  withSession(url, (session) => migrateOver(session, log, last))

/** The same over a session that is open already. */
export async function migrateOver(
  session: pg.Client,
  log: Logger,
  last: string | null = null,
): Promise<string[]> {
  await session.query(`set timezone = 'UTC'; set lock_timeout = ${LOCK_WITHIN_MS}`)
  await takeMigrationTurn(session)
  await demandOwner(session)
  const before = new Set(await doneMigrations(session))
  for (let tries = 1; !(await isUp(session, log, last)); tries++) {
    if (tries === TRIES) {
      throw new ExpectedFailure(
        'other sessions keep a table locked, so payoutd could not run all migrations: ' +
          'run payoutd migrate again when they are done (pg_stat_activity shows them)',
      )
    }
    await delay(LOCK_WITHIN_MS)
  }
  return (await doneMigrations(session)).filter((name) => !before.has(name))
}

/** Throws an ExpectedFailure if the session's role may not migrate. */
async function demandOwner(session: pg.Client): Promise<void> {
  const { rows } = await session.query<{ role: string; may: boolean }>(
    `select current_user as role, has_schema_privilege(current_schema(), 'create')
       and coalesce((select pg_has_role(relowner, 'usage') from pg_class where oid = to_regclass('migrations')), true) as may`,
  )
  if (rows[0]?.may === false)
    throw new ExpectedFailure(
      `the database role ${rows[0].role} may not migrate: set DATABASE_URL to the role that owns the tables (docs/how-to/containers.md)`,
    )
}

/**
 * Waits until no other session migrates, and none does until this one ends. Polls, because a session that waits for the lock in one
 * statement would hold up index builds.
 */
export async function takeMigrationTurn(session: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await session.query<{ mine: boolean }>(
      `select pg_try_advisory_lock(${PG_MIGRATE_LOCK_ID}) as mine`,
    )
    if (rows[0]?.mine) return
    await delay(TURN_EVERY_MS)
  }
}

/** Runs the missing migrations. False: a lock was not available. */
async function isUp(session: pg.Client, log: Logger, last: string | null): Promise<boolean> {
  const logger = {
    info: () => undefined,
    // The library also warns about a migration that is meant to run without a transaction.
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

/** The library's own loader sends a whole file at once, which the server runs as one transaction. */
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
