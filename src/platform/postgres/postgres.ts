import { createHash } from 'node:crypto'
import type { Duplex } from 'node:stream'
import pLimit from 'p-limit'
import pg from 'pg'
import { wellFormed } from '../../text/text.ts'
import type { Instant } from '../running/clock.ts'
import { type CommitName, crashPoint } from '../running/crash-points.ts'
import { pause, waitFor } from '../running/lifecycle.ts'
import { type BinaryType, binaryArray, isBinaryType } from './binary-arrays.ts'
import { asked, isUnanswered, sqlState } from './faults.ts'

/** A statement with named parameters: one file each, in the `sql/` of its folder. */
export type Sql<Params, Row> = {
  readonly text: string
  readonly name: string
  /** What each placeholder names: a parameter, or a field of rows (`payouts.state`). */
  readonly keys: readonly string[]
  readonly values: (params: Params) => unknown[]
  /** Never set: carries the row's type. */
  readonly row?: Row
}

/** A piece of statement text that several statements share, such as a list of columns. */
export type Fragment = { readonly fragment: string }

type ColumnType = BinaryType | 'uuid'

/**
 * Rows passed to a statement as one parameter, which becomes a table with a column for each field named here.
 * `ordered`: adds the row's position, from 1, as column `n`.
 */
type Rows<Params> = {
  [Name in keyof Params & string]: Params[Name] extends readonly (infer Row)[]
    ? { rows: Name; columns: { readonly [Field in keyof Row & string]?: ColumnType }; ordered?: true }
    : never
}[keyof Params & string]

type Hole<Params> =
  | (keyof Params & string)
  | Fragment
  | Rows<Params>
  | { readonly text: string; readonly keys: readonly string[] }

/**
 * sql<{ merchantId: string }, { state: State }>`select state from payouts where merchant_id = ${'merchantId'}`
 *
 * Holes are names of parameters, rows, fragments, or whole statements with their parameters. Columns come back in
 * camel case; bigint as bigint, timestamptz as milliseconds since the epoch. Every statement is prepared once per
 * connection, under a name derived from its text.
 */
export function sql<Params, Row = never>(
  parts: TemplateStringsArray,
  ...holes: Hole<Params>[]
): Sql<Params, Row> {
  const keys = [...new Set(holes.flatMap((hole) => keysIn(hole)))]
  const placeOf = (key: string): string => `$${keys.indexOf(key) + 1}`
  const textOf = (hole: Hole<Params>): string => {
    if (typeof hole === 'string') return placeOf(hole)
    if ('fragment' in hole) return hole.fragment
    if ('rows' in hole) return tableOf(hole, placeOf)
    return hole.text.replace(/\$(\d+)/g, (_, place) => placeOf(hole.keys[Number(place) - 1] as string))
  }
  const text = parts.reduce((all, part, i) => all + textOf(holes[i - 1] as Hole<Params>) + part)
  const name = createHash('sha256').update(text).digest('base64url').slice(0, 24)
  const types = arrayTypes(text)
  const readers = keys.map((key, i) => {
    const read = readerOf<Params>(key)
    const type = types.get(i + 1)
    return (params: Params) => storable(read(params), type)
  })
  return { text, keys, name, values: (params) => readers.map((read) => read(params)) }
}

/** The placeholders that the statement casts to an array that goes in binary, with the type of its elements. */
function arrayTypes(text: string): ReadonlyMap<number, BinaryType> {
  const casts = text.matchAll(/\$(\d+)::(\w+)\[\]/g)
  return new Map(
    [...casts].flatMap(([, place, type = '']) =>
      isBinaryType(type) ? [[Number(place), type] as const] : [],
    ),
  )
}

const keyOf = ({ rows }: { rows: string }, field: string): string => `${rows}.${field}`

function keysIn<Params>(hole: Hole<Params>): readonly string[] {
  if (typeof hole === 'string') return [hole]
  if ('rows' in hole) return Object.keys(hole.columns).map((field) => keyOf(hole, field))
  return 'keys' in hole ? hole.keys : []
}

function tableOf<Params>(hole: Rows<Params>, placeOf: (key: string) => string): string {
  const fields = Object.entries<string>(hole.columns)
  const arrays = fields.map(([field, type]) => `${placeOf(keyOf(hole, field))}::${type}[]`)
  const names = fields.map(([field]) => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))
  return hole.ordered
    ? `(select * from unnest(${arrays.join(', ')}) with ordinality as given (${names.join(', ')}, n))`
    : `(select * from unnest(${arrays.join(', ')}) as given (${names.join(', ')}))`
}

/** Reads the value of one placeholder out of the parameters. */
function readerOf<Params>(key: string): (params: Params) => unknown {
  const [name = '', field] = key.split('.')
  const given = (params: Params) => params[name as keyof Params]
  if (field === undefined) return given
  return (params) => (given(params) as Record<string, unknown>[]).map((row) => row[field])
}

/** Runs statements: a transaction, or the pool itself for a single statement. */
export interface Connection {
  run<Params, Row>(statement: Sql<Params, Row>, params: Params): Promise<Row[]>
}

export interface Transaction extends Connection {
  /** The database's clock when the transaction began. Leases, deadlines and queries use this clock. */
  readonly now: Instant
}

export interface Database extends Connection {
  /**
   * Runs `work` in one transaction. After a deadlock or serialization failure (40P01, 40001) it rolls back and runs
   * `work` again, so `work` must be safe to repeat: in particular, no remote call. `name` is the name of its crash
   * points.
   */
  transaction<T>(name: CommitName, work: (tx: Transaction) => Promise<T>): Promise<T>
  /** A single statement that changes something: its own transaction, with a name like one. */
  write<Params, Row>(name: CommitName, statement: Sql<Params, Row>, params: Params): Promise<Row[]>
  close(): Promise<void>
}

const PARSERS: Record<number, (text: string) => unknown> = {
  20: BigInt,
  // payoutd's connections have the time zone UTC.
  1184: (text) =>
    text.endsWith('+00')
      ? Date.parse(`${text.slice(0, 10)}T${text.slice(11, -3)}Z`)
      : Date.parse(text.replace(' ', 'T').replace(/([+-]\d\d)$/, '$1:00')),
}

const types = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    PARSERS[oid] ?? pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
}

/**
 * Every statement of the product finds its rows by key, a few hundred at a time, and locks them in key order. A
 * plan prepared while a table is young becomes a sequential scan of the full table later. A hash join locks in its
 * own order, which once deadlocked a callback with the outcome it overtook. A bitmap scan loses the order of its
 * index, so that a limit reads everything first. payoutd's connections forbid these plans (docs/decisions/0004 and
 * 0005).
 */
const PLANS = {
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_bitmapscan: 'off',
  jit: 'off',
}

/**
 * What every statement relies on. Under any other isolation a transaction that waited for a lock would not see what
 * its holder committed. Too much work is found out by the limit of a transaction, which other limits would hide.
 */
const RELIED_ON = {
  default_transaction_isolation: 'read committed',
  timezone: 'UTC',
  datestyle: 'ISO',
  statement_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  idle_session_timeout: '0',
}

/**
 * Sets them on a connection, whatever the server, its databases and roles, or `options` in the URL say. A commit
 * that is not on the server's disk is lost in a crash, and nobody can detect that, as no timeline changes. The
 * function keeps settings that wait for a standby, or expressly for none.
 */
const settle = (client: pg.ClientBase, settings: Record<string, string>) =>
  client.query({
    text: `select set_config(name, value, false) from unnest($1::text[], $2::text[]) as wanted (name, value)
      where name <> 'synchronous_commit' or current_setting(name) in ('off', 'on')`,
    values: [
      ['synchronous_commit', ...Object.keys(settings)],
      ['on', ...Object.values(settings)],
    ],
  })

const TRANSACTION_TIMEOUT_MS = 10_000
const KEEP_ALIVE_MS = 10_000
/** How long a closing pool waits for its connections to close. */
const GOODBYE_MS = 2_000

/**
 * A pool of at most `connections` to the database at `url`. The server ends a transaction that is open for longer
 * than `transactionTimeoutMs`, so that a frozen process does not hold a lock for long. The client gives up a
 * statement without an answer after one and a half times as long, and closes its connection: the server is frozen,
 * or the connection is open at this end only. Each connection sets what statements rely on (`RELIED_ON`, `PLANS`).
 * If `synchronous_commit` is off, each connection turns it on.
 */
export function connectDatabase(options: {
  url: string
  connections: number
  applicationName: string
  transactionTimeoutMs?: number
  /** A statement that waits longer for a lock fails; undefined: it waits as long as the transaction may last. */
  lockTimeoutMs?: number
  /** What carries a connection's bytes instead of TCP: for a database without an address. */
  stream?: () => Duplex
  /** Uses every new connection before anything else does; if it rejects, the pool does not use the connection. */
  onConnect?: (connection: Connection) => Promise<void>
  /** Hears of every transaction that was committed. */
  onCommit?: (name: CommitName) => void
}): Database {
  const { transactionTimeoutMs = TRANSACTION_TIMEOUT_MS, lockTimeoutMs = 0, onConnect, onCommit } = options
  const settings = {
    ...PLANS,
    ...RELIED_ON,
    transaction_timeout: String(transactionTimeoutMs),
    lock_timeout: String(lockTimeoutMs),
  }
  const pool = new pg.Pool({
    Client,
    connectionString: options.url,
    max: options.connections,
    application_name: options.applicationName,
    connectionTimeoutMillis: 5_000,
    query_timeout: transactionTimeoutMs * 1.5,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    types,
    ...(options.stream && { stream: options.stream }),
    onConnect: async (client) => {
      // A database without an address lives in this process and ends with it.
      if (!options.stream) await settle(client, settings)
      await onConnect?.({ run: (statement, params) => run(client, statement, params) })
    },
  })
  // The pool replaces an idle connection that breaks; the next statement reports a dead server.
  pool.on('error', () => undefined)
  // The pool has no listener on a connection that breaks during hand-over, which would end the process.
  pool.on('connect', (client) => client.on('error', () => undefined))
  return {
    run: (statement, params) => run(pool, statement, params),
    async transaction(name, work) {
      const result = await inTransaction(pool, name, work)
      onCommit?.(name)
      return result
    },
    async write(name, statement, params) {
      crashPoint('before commit', name)
      const rows = await run(pool, statement, params)
      crashPoint('after commit', name)
      return rows
    },
    close: () => close(pool),
  }
}

/**
 * Closes a connection whose login failed. A server waits a minute for the rest of a login, and this process could
 * not end for as long.
 */
class Client extends pg.Client {
  override connect(): Promise<pg.Client>
  override connect(callback: (error: Error) => void): void
  override connect(callback?: (error: Error) => void): Promise<pg.Client> | undefined {
    const connected = super.connect()
    connected.catch(() => this.end().catch(() => undefined))
    if (!callback) return connected
    connected.then(() => callback(null as never), callback)
    return undefined
  }
}

/** The same database, with every call of it made by `around`. */
export const through = (db: Database, around: <T>(call: () => Promise<T>) => Promise<T>): Database => ({
  run: (statement, params) => around(() => db.run(statement, params)),
  transaction: (name, work) => around(() => db.transaction(name, work)),
  write: (name, statement, params) => around(() => db.write(name, statement, params)),
  close: () => db.close(),
})

/** The same database for callers that may use only so many of its connections at once; further callers wait. */
export function atMost(connections: number, db: Database): Database {
  const limit = pLimit(connections)
  return through(db, (call) => limit(call))
}

/** The same database for a caller that runs many statements: each that ends, in whatever way, is a sign of life. */
export const signing = (sign: () => void, db: Database): Database =>
  through(db, (call) => call().finally(sign))

/** A session of its own, outside any pool, closed when `work` ends. */
export async function withSession<T>(url: string, work: (session: pg.Client) => Promise<T>): Promise<T> {
  const session = new Client({ connectionString: url, connectionTimeoutMillis: 5_000, keepAlive: true })
  // A lost session reports the loss here as well as to the running statement.
  session.on('error', () => undefined)
  await session.connect()
  try {
    await settle(session, RELIED_ON)
    return await work(session)
  } finally {
    await session.end()
  }
}

/** `end` alone resolves while connections are still closing. A silent connection never closes. */
async function close(pool: pg.Pool): Promise<void> {
  let open = pool.totalCount
  const closed = new Promise<void>((resolve) => {
    if (open === 0) resolve()
    pool.on('remove', () => {
      open--
      if (open === 0) resolve()
    })
  })
  await pool.end()
  await waitFor(closed, GOODBYE_MS)
}

/**
 * Makes any parameter storable: PostgreSQL takes any text but a NUL, and the driver would replace half a character. An array
 * whose elements have a type goes in binary.
 */
function storable(value: unknown, type?: BinaryType): unknown {
  if (typeof value === 'string') return wellFormed(value)
  if (!Array.isArray(value)) return value
  return (type && binaryArray(value, type)) ?? value.map((each) => storable(each))
}

const columnNames = new Map<string, readonly string[]>()

async function run<Params, Row>(
  on: pg.Pool | pg.ClientBase,
  statement: Sql<Params, Row>,
  params: Params,
): Promise<Row[]> {
  const values = statement.values(params)
  const result = await asked(
    on.query({ name: statement.name, text: statement.text, values, rowMode: 'array' }),
  )
  let names = columnNames.get(statement.name)
  if (!names) {
    names = result.fields.map(({ name }) =>
      name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    )
    columnNames.set(statement.name, names)
  }
  const columns = names
  return result.rows.map((row: unknown[]) => {
    const record: Record<string, unknown> = {}
    for (let i = 0; i < columns.length; i++) record[columns[i] as string] = row[i]
    return record as Row
  })
}

const TRY_AGAIN = new Set(['40P01', '40001'])

async function inTransaction<T>(
  pool: pg.Pool,
  name: CommitName,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const client = await asked(pool.connect())
    let broken: Error | undefined
    // A connection lost between two statements reports the loss only here.
    const onLoss = (error: Error) => {
      broken = error
    }
    client.on('error', onLoss)
    try {
      const now = await begin(client)
      const result = await work({ now, run: (statement, params) => run(client, statement, params) })
      crashPoint('before commit', name)
      await asked(client.query('commit'))
      crashPoint('after commit', name)
      return result
    } catch (failure) {
      // A server that ends a connection between two statements says why only there.
      const error = broken instanceof pg.DatabaseError ? broken : failure
      // After a statement without an answer a rollback would get none either. The connection ends, and with it the
      // transaction.
      if (isUnanswered(error)) broken = error
      else
        await client.query('rollback').catch((failed: Error) => {
          broken = failed
        })
      if (attempt >= 10 || !TRY_AGAIN.has(sqlState(error) ?? '')) throw error
    } finally {
      client.off('error', onLoss)
      client.release(broken)
    }
    await pause(2 ** attempt)
  }
}

/** Both statements in one round trip. */
async function begin(client: pg.PoolClient): Promise<Instant> {
  const results: unknown = await asked(client.query('begin; select now()'))
  const [, { rows }] = results as [unknown, pg.QueryResult<{ now: Instant }>]
  return (rows[0] as { now: Instant }).now
}
