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
    await backup.#run(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${database}'`,
      `create database ${database}_backup template ${database}`,
    )
    return backup
  }

  restore(): Promise<void> {
    return this.#run(
      `drop database ${this.#database} with (force)`,
      `create database ${this.#database} template ${this.#database}_backup`,
    )
  }

  #run(...statements: string[]): Promise<void> {
    return withSession(this.#server, async (session) => {
      for (const statement of statements) await session.query(statement)
    })
  }
}
