import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { Duplex } from 'node:stream'
import { PGlite } from '@electric-sql/pglite'
import pg from 'pg'
import type { Instant } from '../../src/domain/instant.ts'
import { migrateOver } from '../../src/ledger/tables/migrate.ts'
import { migrationsDir } from '../../src/ledger/tables/migrations.ts'
import { silentLogger } from '../../src/platform/log.ts'
import { connectDatabase, type Database } from '../../src/platform/postgres/postgres.ts'

/**
 * Replaces `now()` and `clock_timestamp()` of statements, column defaults and functions, and the function that
 * returns the timeline: these come before PostgreSQL's own in the search path.
 */
const CLOCK = `
  create schema simulation;
  create function simulation.now() returns timestamptz language sql stable
    as $$ select to_timestamp(current_setting('simulation.now')::float8 / 1000) $$;
  create function simulation.clock_timestamp() returns timestamptz language sql stable
    as $$ select simulation.now() $$;
  create function simulation.pg_walfile_name(pg_lsn) returns text language sql stable
    as $$ select rpad(lpad(current_setting('simulation.timeline'), 8, '0'), 24, '0') $$;`
/** Like the product's own connections (src/platform/postgres/postgres.ts): this server ignores a connection's options. */
const SESSION = `
  set search_path = public, simulation, pg_catalog;
  set timezone = 'UTC';
  set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off; set enable_bitmapscan = off;
  set plan_cache_mode = force_generic_plan;
  set simulation.now = '0';
  set simulation.timeline = '1';`
const TABLES = `
  select relname::text as name from pg_class
  where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
    and relname not in ('migrations', 'compatibility')`
/** The place for a snapshot's rows: a table for each of the product's, without its indexes. */
const BACKUP = `
  create schema backup;
  create table backup.sequences (name text, value bigint, is_called boolean);
  create table backup.tables as
    select relname::text as table_name,
      (select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
       where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = '') as columns
    from pg_class c
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
      and relname not in ('migrations', 'compatibility', 'reconciled_payouts', 'reconciliations');
  do $$
  declare name text;
  begin
    for name in select table_name from backup.tables loop
      execute format('create table backup.%I (like public.%I)', name, name);
    end loop;
  end $$;`
const KEPT_IN = '.payoutd/simulation'

/**
 * PostgreSQL in this process, with the product's tables in it. It has one session, so transactions run one after
 * the other, and its clock stands still until it is moved.
 */
export class Postgres {
  readonly #server: PGlite
  /** The product's own. */
  readonly db: Database

  /** Selects the names of the tables that hold a row. */
  readonly #full: string
  /** The server's timeline: a standby that takes over continues on another. */
  timeline = 1
  #now: Instant = 0

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

  /** Migrates once, and keeps a copy for the next time: PostgreSQL takes five seconds to create a new database. */
  static async open(): Promise<Postgres> {
    const made = createHash('sha256').update(CLOCK + BACKUP)
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
    if (now === this.#now) return
    this.#now = now
    this.#server.execProtocolRawSync(simpleQuery(`set simulation.now = '${now}'`))
  }

  /** Deletes everything. */
  async clear(): Promise<void> {
    await this.#empty('restart identity')
    this.#setTimeline(1)
  }

  /** Takes a snapshot of every table. */
  async copy(): Promise<void> {
    await this.#server.exec(`
      do $$
      declare name text;
      begin
        for name in select table_name from backup.tables loop
          execute format('truncate backup.%I', name);
          execute format('insert into backup.%I select * from public.%I', name, name);
        end loop;
        truncate backup.sequences;
        for name in select sequencename from pg_sequences where schemaname = 'public' loop
          execute format('insert into backup.sequences select %L, last_value, is_called from public.%I', name, name);
        end loop;
      end $$`)
  }

  /** Restores every table from the snapshot, on another server. */
  async setBack(): Promise<void> {
    await this.#empty('continue identity')
    await this.#server.exec(`
      do $$
      declare each record;
      begin
        for each in select table_name, columns from backup.tables loop
          execute format('insert into public.%I (%s) overriding system value select %s from backup.%I',
                         each.table_name, each.columns, each.columns, each.table_name);
        end loop;
        perform setval(('public.' || name)::regclass, value, is_called) from backup.sequences;
      end $$`)
    this.takeOver()
  }

  /** Another server has all of it. */
  takeOver(): void {
    this.#setTimeline(this.timeline + 1)
  }

  #setTimeline(timeline: number): void {
    this.timeline = timeline
    this.#server.execProtocolRawSync(simpleQuery(`set simulation.timeline = '${timeline}'`))
  }

  async #empty(identity: string): Promise<void> {
    const full = (await this.#server.query<{ name: string }>(this.#full)).rows.map(({ name }) => name)
    if (full.length > 0) await this.#server.exec(`truncate ${full.join(', ')} ${identity} cascade`)
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
  await server.exec(BACKUP)
  const copy = await server.dumpDataDir('none')
  await server.close()
  mkdirSync(KEPT_IN, { recursive: true })
  const partial = `${file}.${process.pid}`
  writeFileSync(partial, Buffer.from(await copy.arrayBuffer()))
  renameSync(partial, file)
}

/** PostgreSQL's protocol, without a network: each message is answered before the next is taken. */
function wireTo(server: PGlite): Duplex {
  // A replaced connection leaves its prepared statements to the next: there is only one session.
  server.execProtocolRawSync(simpleQuery('deallocate all'))
  const wire = new Duplex({
    read: () => undefined,
    write(bytes: Buffer, _encoding, done) {
      if (bytes[0] === TERMINATE) {
        wire.destroy()
        done()
        return
      }
      const answer = Buffer.from(server.execProtocolRawSync(bytes))
      // Not at once: the client may still read the previous answer, and its parser would lose one of them.
      process.nextTick(() => {
        wire.push(answer)
        done()
      })
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
