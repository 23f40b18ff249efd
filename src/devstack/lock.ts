import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/**
 * Takes the directory for this process, or throws an error that says which process has it. SQLite's file
 * lock is the kernel's: it ends with the process, however that ends, so there is no stale lock to take over.
 */
export function lockDirectory(dir: string): { release(): void } {
  const holder = path.join(dir, 'stack.pid')
  const database = new DatabaseSync(path.join(dir, 'stack.lock'), { timeout: 0 })
  try {
    database.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if (!(error instanceof Error && 'errcode' in error && error.errcode === 5)) throw error
    const pid = readFileSync(holder, 'utf8').trim()
    throw new Error(
      `the stack in ${dir} is up already, held by process ${pid}: use its addresses, which are in stack.env ` +
        `there, or stop it with Ctrl-C or "kill ${pid}" and start again`,
      { cause: error },
    )
  }
  writeFileSync(holder, `${process.pid}\n`)
  return { release: () => database.close() }
}
