import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** Where this version's migrations are. */
export const migrationsDir = fileURLToPath(new URL('../migrations', import.meta.url))

/** A large table's index is created concurrently, so that no write waits for it; Postgres allows that in no transaction. */
const NO_TRANSACTION = /^-- No transaction$/m

/** The names of this version's migrations, in their order. */
export const ourMigrations = async (): Promise<string[]> =>
  (await readdir(migrationsDir)).map((file) => path.basename(file, '.sql')).sort()

const OURS = new Set(await ourMigrations())

/** Whether this version has a migration. An older payoutd may do harm on tables that a newer one has changed. */
export const knows = (migration: string): boolean => OURS.has(migration)

/** `statements`: each is sent in a round trip of its own. */
export async function readMigration(file: string): Promise<{ statements: string[]; inTransaction: boolean }> {
  const text = await readFile(file, 'utf8')
  const inTransaction = !NO_TRANSACTION.test(text)
  const statements = inTransaction ? [text] : text.split(/;$/m).filter((each) => /^[a-z]/m.test(each))
  return { statements, inTransaction }
}
