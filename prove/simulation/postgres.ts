import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { Duplex } from 'node:stream'
import { PGlite } from '@electric-sql/pglite'
import pg from 'pg'
import { migrateOver } from '../../src/ledger/migrate.ts'
import { migrationsDir } from '../../src/ledger/migrations.ts'
import type { Instant } from '../../src/payout/instant.ts'
import { silentLogger } from '../../src/platform/log.ts'
import { connectDatabase, type Database } from '../../src/platform/postgres.ts'

/**
 * `now()` and `clock_timestamp()` of statements, column defaults and functions are these: they stand before
 * PostgreSQL's own in the search path.
 */
const CLOCK = `
  create schema simulation;
  create function simulation.now() returns timestamptz language sql stable
    as $$ select to_timestamp(current_setting('simulation.now')::float8 / 1000) $$;
  create function simulation.clock_timestamp() returns timestamptz language sql stable
    as $$ select simulation.now() $$;`
/** As the product's own connections (src/platform/postgres.ts): this server reads no options of a connection. */
const SESSION = `
  set search_path = public, simulation, pg_catalog;
  set timezone = 'UTC';
  set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off; set enable_bitmapscan = off;
  set plan_cache_mode = force_generic_plan;
  set simulation.now = '0';`
const TABLES = `
  select relname::text as name from pg_class
  where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
    and relname <> 'migrations'`
const KEPT_IN = '.payoutd/simulation'

/**
 * PostgreSQL in this very process, with the product's tables in it. It has one session, so transactions come one
 * after the other, and its clock stands still until it is moved.
 */
export class Postgres {
  readonly #server: PGlite
  /** The product's own. */
  readonly db: Database

  /** Asks for the names of the tables that hold a row. */
  readonly #full: string

  private constructor(server: PGlite, tables: readonly string[]) {
    this.#server = server
    this.#full = tables
      .map((name) => `select '${name}' as name where exists (select from ${name})`)
      .join(' union all ')
    this.db = connectDatabase({
      url: 'postgres://postgres@in-process/postgres',
      connections: 1,
      applicationName: 'simulation',
      stream: () => wireTo(server),
    })
  }

  /** Migrates once, and keeps a copy for the next time: PostgreSQL takes five seconds to make a new database. */
  static async open(): Promise<Postgres> {
    const made = createHash('sha256').update(CLOCK)
    for (const name of readdirSync(migrationsDir).sort())
      made.update(readFileSync(`${migrationsDir}/${name}`))
    const file = `${KEPT_IN}/${made.digest('hex').slice(0, 16)}.tar`
    if (!existsSync(file)) await keep(file)
    const server = await PGlite.create({ loadDataDir: new Blob([readFileSync(file)]) })
    await server.exec(SESSION)
    const { rows } = await server.query<{ name: string }>(TABLES)
    return new Postgres(
      server,
      rows.map(({ name }) => name),
    )
  }

  setClock(now: Instant): void {
    this.#server.execProtocolRawSync(simpleQuery(`set simulation.now = '${now}'`))
  }

  /** Forgets everything. */
  async clear(): Promise<void> {
    const full = (await this.#server.query<{ name: string }>(this.#full)).rows.map(({ name }) => name)
    if (full.length > 0) await this.#server.exec(`truncate ${full.join(', ')} restart identity cascade`)
  }

  async close(): Promise<void> {
    await this.db.close()
    await this.#server.close()
  }
}

async function keep(file: string): Promise<void> {
  const server = await PGlite.create()
  await server.exec(CLOCK + SESSION)
  const session = new pg.Client({ user: 'postgres', stream: () => wireTo(server) })
  await session.connect()
  await migrateOver(session, silentLogger)
  await session.end()
  const copy = await server.dumpDataDir('none')
  await server.close()
  mkdirSync(KEPT_IN, { recursive: true })
  const partial = `${file}.${process.pid}`
  writeFileSync(partial, Buffer.from(await copy.arrayBuffer()))
  renameSync(partial, file)
}

/** PostgreSQL's protocol, without a network: each message is answered before the next is taken. */
function wireTo(server: PGlite): Duplex {
  // A connection that was replaced leaves its prepared statements to the next: there is one session.
  server.execProtocolRawSync(simpleQuery('deallocate all'))
  const wire = new Duplex({
    read: () => undefined,
    write(bytes: Buffer, _encoding, done) {
      if (bytes[0] === TERMINATE) wire.destroy()
      else wire.push(Buffer.from(server.execProtocolRawSync(bytes)))
      done()
    },
  })
  const socket = {
    connect: () => process.nextTick(() => wire.emit('connect')),
    setNoDelay: none,
    setKeepAlive: none,
  }
  return Object.assign(wire, { ...socket, ref: none, unref: none })
}

const TERMINATE = 'X'.charCodeAt(0)
const none = () => undefined

function simpleQuery(text: string): Uint8Array {
  const body = Buffer.from(`${text}\0`)
  const head = Buffer.alloc(5)
  head.write('Q')
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
