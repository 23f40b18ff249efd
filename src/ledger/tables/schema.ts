import { ExpectedFailure } from '../../platform/expected-failure.ts'
import { type Database, sql } from '../../platform/postgres/postgres.ts'
import { ourMigrations } from './migrations.ts'

/** The state of a database's tables, by the migrations that made them. */
export type Schema = {
  done: string[]
  /** The migration that a payoutd must know to work on the database; null: the database is older than that rule. */
  oldest: string | null
}

/** How this payoutd and a database fit together, in words; `newer`: it works, and the database is ahead. */
export type SchemaFit = { kind: 'fits' | 'newer' | 'differs'; what: string; todo: string }

const MIGRATE = 'run payoutd migrate'

/** `ours`: this version's migrations, in their order. */
export function fitOf(ours: readonly string[], { done, oldest }: Schema): SchemaFit {
  const missing = ours.filter((name) => !done.includes(name))
  if (missing.length > 0) {
    const what = `the database lacks the migrations ${missing.join(', ')}`
    return { kind: 'differs', what, todo: MIGRATE }
  }
  const unknown = done.filter((name) => !ours.includes(name))
  if (unknown.length === 0) {
    return { kind: 'fits', what: `all ${ours.length} migrations are there`, todo: '' }
  }
  const what = `the database has migrations that this payoutd does not know: ${unknown.join(', ')}`
  return oldest !== null && ours.includes(oldest)
    ? { kind: 'newer', what: `${what}; it works with them`, todo: 'update it when you can' }
    : { kind: 'differs', what, todo: 'use the payoutd that ran them, or a newer one' }
}

const tables = sql<object, { migrations: boolean; compatibility: boolean }>`
  select to_regclass('migrations') is not null as migrations,
    to_regclass('compatibility') is not null as compatibility`
const doneMigrations = sql<object, { name: string }>`select name from migrations order by name`
const compatibility = sql<object, { oldest: string }>`select oldest from compatibility`

export async function schemaFit(db: Database): Promise<SchemaFit> {
  const [there] = await db.run(tables, {})
  const done = there?.migrations ? (await db.run(doneMigrations, {})).map(({ name }) => name) : []
  const [row] = there?.compatibility ? await db.run(compatibility, {}) : []
  return fitOf(await ourMigrations(), { done, oldest: row?.oldest ?? null })
}

/** Throws an ExpectedFailure unless this payoutd works on the tables of the database. */
export async function demandSchema(db: Database): Promise<void> {
  const { kind, what, todo } = await schemaFit(db)
  if (kind === 'differs') throw new ExpectedFailure(`${what}: ${todo}`)
}
