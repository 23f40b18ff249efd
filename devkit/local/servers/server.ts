import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../../../src/platform/running/clock.ts'
import { lastLines, type ServerProcess } from './processes/process.ts'

export const PARTS = ['postgres', 'kafka', 'registry', 'sandbox'] as const
export type PartName = (typeof PARTS)[number]

/** How one server is prepared, started and stopped. Every server of the stack has this shape. */
export interface Server {
  /** Starts it on its port and data, and resolves once it works. Throws `ServerFailed`. */
  start(): Promise<ServerProcess>
  /** Stops it so that its data stays sound, and resolves once the process is gone. */
  stop(running: ServerProcess): Promise<void>
}

/** A server did not start, or ended unasked: what happened, where its log is, and the end of the log. */
export class ServerFailed extends Error {
  static async of(name: PartName, what: string, logFile: string): Promise<ServerFailed> {
    return new ServerFailed(`${name} ${what}. Its log, ${logFile}, ends with:\n${await lastLines(logFile)}`)
  }
}

const READY_WITHIN_MS = 120_000

/**
 * Calls `isReady` until it is true. Throws `ServerFailed` if the server ends or takes 120 s; after any failure the
 * server is gone.
 */
export async function untilReady(
  name: PartName,
  running: ServerProcess,
  clock: Clock,
  isReady: () => Promise<boolean>,
): Promise<void> {
  const deadline = clock.monotonic() + READY_WITHIN_MS
  try {
    while (!(await isReady())) {
      if (running.gone) {
        throw await ServerFailed.of(name, `did not start, it ${await running.exited}`, running.logFile)
      }
      if (clock.monotonic() > deadline) {
        throw await ServerFailed.of(name, `was not ready within ${READY_WITHIN_MS / 1000} s`, running.logFile)
      }
      await delay(20)
    }
  } catch (error) {
    running.signal('SIGKILL')
    await running.exited
    throw error
  }
}

/** Sends `signal` and waits; after 60 s it kills. Returns whether the server ended without the kill. */
export async function end(running: ServerProcess, signal: NodeJS.Signals): Promise<boolean> {
  if (running.gone) return false
  running.signal(signal)
  if (await running.endsWithin(60_000)) return true
  running.signal('SIGKILL')
  await running.exited
  return false
}
