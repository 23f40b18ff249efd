import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, renameSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../../../../src/platform/running/clock.ts'
import type { EndBy, Watchdog } from './watchdog.ts'

export interface Command {
  file: string
  args: string[]
  /** Added to this process's environment. */
  env?: Record<string, string>
  cwd?: string
}

/** What every server needs from the process that owns the stack. */
export interface Host {
  watchdog: Watchdog
  clock: Clock
}

/** A server's process, in its own process group, with its own log file. */
export class ServerProcess {
  readonly pid: number
  readonly logFile: string
  /** Resolves with how the process ended, once it is gone. */
  readonly exited: Promise<string>
  #gone = false
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, pid: number, logFile: string, watchdog: Watchdog) {
    this.#child = child
    this.pid = pid
    this.logFile = logFile
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#gone = true
        resolve(signal ? `ended by ${signal}` : `ended with code ${code}`)
        watchdog.release(pid)
      })
    })
  }

  get gone(): boolean {
    return this.#gone
  }

  /**
   * Starts `command` with its output in `logFile`; the previous log stays beside it as `.1`. Throws if the program
   * cannot run.
   */
  static async spawn(
    command: Command,
    logFile: string,
    endBy: EndBy,
    { watchdog }: Host,
  ): Promise<ServerProcess> {
    keepPreviousLog(logFile)
    const log = openSync(logFile, 'w')
    try {
      const child = spawn(command.file, command.args, {
        detached: true,
        stdio: ['ignore', log, log],
        env: { ...process.env, ...command.env },
        ...(command.cwd && { cwd: command.cwd }),
      })
      if (child.pid !== undefined) watchdog.guard(child.pid, endBy)
      await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject)).catch(
        (cause) => {
          throw new Error(`${command.file} cannot be executed`, { cause })
        },
      )
      return new ServerProcess(child, child.pid!, logFile, watchdog)
    } finally {
      closeSync(log)
    }
  }

  /** Whether it has written `text` to its log yet. Unlike an answer on a port, this surely comes from this process. */
  async said(text: string): Promise<boolean> {
    return (await readFile(this.logFile, 'utf8')).includes(text)
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Waits at most `ms` for the end. Returns whether it came. */
  async endsWithin(ms: number): Promise<boolean> {
    const giveUp = new AbortController()
    const late = delay(ms, false, { signal: giveUp.signal }).catch(() => false)
    const ended = await Promise.race([this.exited.then(() => true), late])
    giveUp.abort()
    return ended
  }
}

function keepPreviousLog(logFile: string): void {
  try {
    renameSync(logFile, `${logFile}.1`)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
}

/** The last lines of a log, for the person who looks for the cause. */
export async function lastLines(logFile: string, count = 12): Promise<string> {
  const text = await readFile(logFile, 'utf8').catch(() => '(no log)')
  return text.trimEnd().split('\n').slice(-count).join('\n')
}
