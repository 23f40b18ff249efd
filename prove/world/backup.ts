import { withSession } from '../../src/platform/postgres/postgres.ts'

/** A copy of a database that nothing else uses meanwhile. */
export class Backup {
  readonly #server: string
  readonly #database: string

  private constructor(server: string, database: string) {
    this.#server = server
    this.#database = database
  }

  static async of(databaseUrl: string): Promise<Backup> {
    const server = new URL(databaseUrl)
    const database = server.pathname.slice(1)
    server.pathname = '/postgres'
    const backup = new Backup(server.href, database)
    await withSession(server.href, async (session) => {
      await session.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${database}'`,
      )
      await session.query(`create database ${database}_backup template ${database}`)
    })
    return backup
  }

  /** With its former OID, so that it seems to have been set back in place: a connection does not show it. */
  restore(): Promise<void> {
    return withSession(this.#server, async (session) => {
      const { rows } = await session.query('select oid from pg_database where datname = $1', [this.#database])
      await session.query(`drop database ${this.#database} with (force)`)
      await session.query(
        `create database ${this.#database} template ${this.#database}_backup oid ${rows[0].oid}`,
      )
    })
  }
}
