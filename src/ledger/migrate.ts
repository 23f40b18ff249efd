import { fileURLToPath } from 'node:url'
import { runner } from 'node-pg-migrate'
import type { Logger } from '../platform/log.ts'

/**
 * Brings the database at `url` to the newest schema. Several processes may do it at once: they wait for one
 * another. Returns the names of the migrations that were run; empty when nothing was missing.
 */
export async function migrate(url: string, log: Logger): Promise<string[]> {
  const done = await runner({
    databaseUrl: url,
    dir: fileURLToPath(new URL('./migrations', import.meta.url)),
    direction: 'up',
    migrationsTable: 'migrations',
    advisoryLockMode: 'wait',
    logger: {
      debug: () => undefined,
      info: () => undefined,
      warn: (text) => log.warn(text),
      error: (text) => log.debug(text),
    },
  })
  return done.map(({ name }) => name)
}
