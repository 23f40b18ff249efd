import { createHash, randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import pg from 'pg'
import { withSession } from '../src/platform/postgres/postgres.ts'

/** An empty database with all migrations; `looks`: what must be the same once it was used and emptied. */
export type EmptiedDatabase = { name: string; looks: string }

/**
 * Tests pass databases on to each other: for a new one PostgreSQL writes three hundred files, while emptying one
 * takes a tenth of the time. The database that TEST_DATABASE_URL names has the list of the free ones.
 */
const FREE = 'test_free_databases'

const directory = path.resolve(import.meta.dirname, '..', 'src', 'ledger', 'migrations')
const migrations = createHash('sha256')
for (const file of readdirSync(directory).sort()) migrations.update(readFileSync(path.join(directory, file)))
const MIGRATIONS = migrations.digest('hex')

/**
 * Takes and empties a free database with the current migrations, if there is one; drops those with foreign tables,
 * rights or settings, or large files. Hooks run in the order of registration, so a test often stops its processes
 * after it has returned its database: other tests wait a little before they take it. They get it under another
 * name, so that a process still running never writes into another test's database.
 */
export async function takeEmptied(server: string): Promise<EmptiedDatabase | undefined> {
  for (;;) {
    const free = await onServer(server, takeFree)
    if (!free) return undefined
    const { looks } = free
    const name = freshName()
    await onServer(server, (session) => rename(session, free.name, name))
    const isAsBefore = await withSession(urlOf(server, name), async (session) => {
      if ((await looksOf(session).catch(() => null)) !== looks) return false
      await empty(session)
      return true
    })
    if (isAsBefore) return { name, looks }
    await drop(server, name)
  }
}

async function takeFree(session: pg.ClientBase): Promise<EmptiedDatabase | undefined> {
  const { rows } = await session.query<EmptiedDatabase>(
    `delete from ${FREE} where name =
       (select name from ${FREE}
        where migrations = $1 and (given_by = $2 or given_at < now() - interval '3 seconds')
        order by given_by = $2 desc, given_at limit 1 for update skip locked)
     returning name, looks`,
    [MIGRATIONS, process.pid],
  )
  return rows[0]
}

/** Disconnects every client, and none comes back: the old name is gone. */
async function rename(session: pg.ClientBase, from: string, to: string): Promise<void> {
  await session.query(`alter database ${from} with allow_connections false`)
  await session.query('select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = $1', [
    from,
  ])
  await session.query(`alter database ${from} rename to ${to}`)
  await session.query(`alter database ${to} with allow_connections true`)
}

/** Returns it for the next test. */
export async function giveBack(server: string, { name, looks }: EmptiedDatabase): Promise<void> {
  const given = [name, looks, MIGRATIONS, process.pid]
  await onServer(server, (session) =>
    session.query(`insert into ${FREE} values ($1, $2, $3, $4, now())`, given),
  )
}

export async function drop(server: string, name: string): Promise<void> {
  await onServer(server, (session) => session.query(`drop database ${name} with (force)`))
}

export const freshName = (): string => `test_${randomUUID().replaceAll('-', '')}`

/** Drops all free ones: nobody needs them any more. */
export async function dropEmptied(server: string): Promise<void> {
  await onServer(server, async (session) => {
    const { rows } = await session.query<EmptiedDatabase>(`delete from ${FREE} returning name`)
    for (const { name } of rows) await session.query(`drop database if exists ${name} with (force)`)
  })
}

let pool: pg.Pool | undefined
let listed: Promise<void> | undefined

/**
 * On one connection for all tests of a file, as each costs both sides ten milliseconds of CPU time. While unused,
 * it keeps no process alive.
 */
export async function onServer<T>(server: string, work: (session: pg.ClientBase) => Promise<T>): Promise<T> {
  pool ??= new pg.Pool({ connectionString: server, max: 1, allowExitOnIdle: true, idleTimeoutMillis: 0 })
  const session = await pool.connect()
  try {
    listed ??= makeList(session)
    await listed
    return await work(session)
  } finally {
    session.release()
  }
}

export function urlOf(server: string, name: string): string {
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

/** Two processes that create it at the same time collide in the catalogue. */
async function makeList(session: pg.ClientBase): Promise<void> {
  await session.query(`select pg_advisory_lock(hashtext('${FREE}'))`)
  await session.query(`create table if not exists ${FREE} 
    (name text, looks text, migrations text, given_by int, given_at timestamptz)`)
  await session.query(`select pg_advisory_unlock(hashtext('${FREE}'))`)
}

/** Everything except rows that the next test could find changed. */
export async function looksOf(session: pg.Client): Promise<string> {
  const { rows } = await session.query<{ looks: string }>(`
    with ours as (select * from pg_class where relnamespace = 'public'::regnamespace),
    things as (
      select concat_ws(' ', 'class', relname, relkind, relacl, reloptions, relispartition) as thing from ours
      union all
      select concat_ws(' ', 'column', relname, attname, atttypid, attnotnull, attacl)
      from pg_attribute join ours on attrelid = ours.oid
      union all
      select concat_ws(' ', 'trigger', relname, tgname, tgenabled) from pg_trigger join ours on tgrelid = ours.oid
      union all
      select concat_ws(' ', 'constraint', conname, pg_get_constraintdef(oid)) from pg_constraint
      where connamespace = 'public'::regnamespace
      union all
      select concat_ws(' ', 'function', proname, proacl, prosrc) from pg_proc
      where pronamespace = 'public'::regnamespace
      union all
      select concat_ws(' ', 'rights', nspname, nspacl) from pg_namespace where nspname = 'public'
      union all
      select concat_ws(' ', 'setting', setconfig) from pg_db_role_setting join pg_database d on d.oid = setdatabase
      where datname = current_database()
      union all
      select concat_ws(' ', 'rights', defaclobjtype, defaclacl) from pg_default_acl
      union all
      select concat_ws(' ', 'migration', name) from migrations
      union all
      select concat_ws(' ', 'compatible', oldest) from compatibility
      union all
      select concat_ws(' ', 'size', pg_database_size(current_database()) / 16000000)
    )
    select md5(string_agg(thing, ' ' order by thing)) as looks from things`)
  return rows[0]?.looks ?? ''
}

/** Without triggers, so that any order works. */
async function empty(session: pg.Client): Promise<void> {
  const { rows } = await session.query<{ statement: string }>(`
    select format('delete from only %I', tablename) as statement from pg_tables
    where schemaname = 'public' and tablename not in ('migrations', 'compatibility')
    union all
    select format('select setval(%L, %s, false)', seqrelid::regclass, seqstart) from pg_sequence
    where seqrelid <> 'migrations_id_seq'::regclass`)
  const statements = rows.map(({ statement }) => statement)
  await session.query(`set session_replication_role = replica; ${statements.join('; ')}`)
}
