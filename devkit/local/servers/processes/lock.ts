import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** A directory that this process has locked. */
export interface DirectoryLock {
  /** From now on other processes that want the directory learn that it will be free soon. */
  announceStop(): void
  release(): void
}

/**
 * Locks the directory for this process, or throws an error that says which process has it. The kernel holds
 * SQLite's file lock, so it ends with the process in every case and leaves no stale lock behind.
 */
export function lockDirectory(dir: string): DirectoryLock {
  const holder = path.join(dir, 'stack.pid')
  const database = new DatabaseSync(path.join(dir, 'stack.lock'), { timeout: 0 })
  try {
    database.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if (!(error instanceof Error && 'errcode' in error && error.errcode === 5)) throw error
    throw new Error(whoHolds(dir, readFileSync(holder, 'utf8').trim()), { cause: error })
  }
  writeFileSync(holder, `${process.pid}\n`)
  return {
    announceStop: () => writeFileSync(holder, `${process.pid} ${STOPPING}\n`),
    release: () => database.close(),
  }
}

const STOPPING = 'stopping'

function whoHolds(dir: string, holder: string): string {
  const [pid, state] = holder.split(' ')
  if (state === STOPPING)
    return `the stack in ${dir} is still stopping, in process ${pid}: start again when it is gone`
  return (
    `the stack in ${dir} is up already, held by process ${pid}: use its addresses, which are in stack.env ` +
    `there, or stop it with Ctrl-C or "kill ${pid}" and start again`
  )
}
