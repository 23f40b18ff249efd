import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { root } from './root.mjs'

const lockFile = path.join(root, '.payoutd', 'setup.lock')

/**
 * Runs `work` while no other set-up of this clone does, waiting for one that does. The lock names the
 * processes of its holder; it is stale, and taken over, when none of them lives any more. On Ctrl-C and
 * SIGTERM the children are told to end, and the lock stays behind until they have. `work` gets the place to
 * announce them.
 */
export async function withLock(work) {
  mkdirSync(path.dirname(lockFile), { recursive: true })
  const children = new Children()
  await acquire()
  children.remember()
  const abandon = (signal) => {
    children.end()
    process.kill(process.pid, signal)
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.once(signal, abandon)
  try {
    await work(children)
  } catch (error) {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  } finally {
    for (const signal of signals) process.off(signal, abandon)
    rmSync(lockFile)
  }
}

async function acquire() {
  for (let told = false; !create(); await delay(200)) {
    const holders = read()
    const alive = holders.split(' ').find(isAlive)
    if (alive === undefined) takeOver(holders)
    else if (!told) {
      process.stderr.write(`Another set-up is at work (process ${alive}), waiting for it …\n`)
      told = true
    }
  }
}

/** A link appears with its content, or not at all when somebody has the lock. */
function create() {
  const mine = `${lockFile}.${process.pid}`
  writeFileSync(mine, `${process.pid}`)
  try {
    linkSync(mine, lockFile)
    return true
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
    return false
  } finally {
    rmSync(mine)
  }
}

/** Of two that find the same stale lock one may move away the other's new one; it puts it back. */
function takeOver(stale) {
  const moved = `${lockFile}.stale.${process.pid}`
  try {
    renameSync(lockFile, moved)
    if (readFileSync(moved, 'utf8') !== stale) linkSync(moved, lockFile)
    rmSync(moved)
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'EEXIST') throw error
  }
}

/** Empty when there is no lock any more. */
function read() {
  try {
    return readFileSync(lockFile, 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT') return ''
    throw error
  }
}

function isAlive(pid) {
  try {
    return Number(pid) > 0 && process.kill(Number(pid), 0)
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** The programs that this set-up has started and that still run. */
class Children {
  #running = new Set()

  /** Returns how to forget it again. */
  add(child) {
    this.#running.add(child)
    this.remember()
    return () => {
      this.#running.delete(child)
      this.remember()
    }
  }

  remember() {
    const pids = [process.pid, ...[...this.#running].map((child) => child.pid)]
    writeFileSync(`${lockFile}.new`, pids.join(' '))
    renameSync(`${lockFile}.new`, lockFile)
  }

  end() {
    for (const child of this.#running) child.kill('SIGTERM')
  }
}
