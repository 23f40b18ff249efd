import { createHash } from 'node:crypto'
import { mkdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ExpectedFailure } from '../platform/expected-failure.ts'

const BUSY = 5

/**
 * Locks a payroll file for one ingest until `release` is called; throws an ExpectedFailure while another ingest has it. SQLite
 * uses the kernel's lock, which ends with the process, however that ends, so the next ingest can proceed.
 */
export async function lockPayroll(path: string, folder: string): Promise<{ release(): void }> {
  await mkdir(folder, { recursive: true })
  const name = createHash('sha256')
    .update(await realpath(path))
    .digest('hex')
  const database = new DatabaseSync(join(folder, `${name.slice(0, 32)}.lock`), { timeout: 0 })
  try {
    database.exec('begin exclusive')
  } catch (error) {
    database.close()
    if (!(error instanceof Error && 'errcode' in error && error.errcode === BUSY)) throw error
    const message = `another ingest of ${path} is under way: this one does nothing`
    throw new ExpectedFailure(
      `${message}. Wait until it ends, then run your command again if it had other options`,
      {
        cause: error,
      },
    )
  }
  return { release: () => database.close() }
}
