import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../../../../src/platform/running/clock.ts'
import type { Layout } from '../layout.ts'

/**
 * Ends the servers of an earlier run in the same directory that still run, because that run and its watchdog were
 * both killed or the watchdog has not finished. Resolves once they are gone.
 */
export async function endLeftovers(layout: Layout, clock: Clock): Promise<void> {
  const list = await readFile(layout.pids, 'utf8').catch(() => '')
  const still = (pid: number) => commandLine(pid).includes(layout.dir)
  const left = list
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split(' '))
    .map(([pid, signal]) => ({ pid: Number(pid), signal: `SIG${signal}` as NodeJS.Signals }))
    .filter(({ pid }) => still(pid))
  for (const { pid, signal } of left) send(pid, signal)
  const deadline = clock.monotonic() + 10_000
  for (const { pid } of left) {
    while (still(pid)) {
      if (clock.monotonic() > deadline) send(pid, 'SIGKILL')
      await delay(50)
    }
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

/** Empty if there is no such process. A pid alone proves nothing: the system reuses it. */
function commandLine(pid: number): string {
  try {
    return process.platform === 'linux'
      ? readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
      : execFileSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8', stdio: 'pipe' })
  } catch {
    return ''
  }
}
