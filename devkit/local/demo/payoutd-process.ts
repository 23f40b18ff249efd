import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Host, lastLines, ServerProcess } from '../servers/processes/process.ts'
import { end, type Server } from '../servers/server.ts'
import type { DemoSettings } from './settings.ts'

const program = path.resolve(import.meta.dirname, '../../../bin/payoutd.ts')

/**
 * How Node runs payoutd everywhere (package.json and the Dockerfile say the same). With 4 MB for young objects the garbage
 * collector took a fifth of the worker's time under full load, because it copied again and again what hundreds of payouts in
 * flight hold; with 16 MB it takes a tenth, for 30 MB more of memory.
 */
export const payoutdNode = ['--min-semi-space-size=16', '--max-semi-space-size=16']

export interface PayoutdOptions {
  settings: DemoSettings
  /** The same settings as a file: the command line contains no secrets, and shows whose process it is. */
  settingsFile: string
  logFile: string
  /** Whether it also gets this process's variables. */
  inherit: boolean
}

/** payoutd with all its roles, as a process that stops, crashes and starts like the servers it uses. */
export function payoutd(options: PayoutdOptions, host: Host): Server {
  const { settings, settingsFile, logFile, inherit } = options
  const serve = [process.execPath, ...payoutdNode, `--env-file=${settingsFile}`, program, 'serve']
  const [file = '', ...args] = inherit ? serve : ['/usr/bin/env', '-i', ...serve]
  return {
    start: async () => {
      const running = await ServerProcess.spawn({ file, args }, logFile, 'TERM', host)
      await untilUp(running, settings, host)
      return running
    },
    stop: async (running) => void (await end(running, 'SIGTERM')),
  }
}

export const publicUrl = ({ PUBLIC_HOST, PUBLIC_PORT }: DemoSettings): string =>
  `http://${PUBLIC_HOST}:${PUBLIC_PORT}`
export const internalUrl = ({ INTERNAL_HOST, INTERNAL_PORT }: DemoSettings): string =>
  `http://${INTERNAL_HOST}:${INTERNAL_PORT}`

const UP_WITHIN_MS = 60_000

/** Up: its dependencies answer it, and it answers the gateway. */
async function untilUp(running: ServerProcess, settings: DemoSettings, { clock }: Host): Promise<void> {
  const deadline = clock.monotonic() + UP_WITHIN_MS
  const isReady = async () => (await status(`${internalUrl(settings)}/readyz`)) === 200
  const hasEndpoint = async () => (await status(publicUrl(settings))) !== undefined
  while (!(await isReady()) || !(await hasEndpoint())) {
    const late = clock.monotonic() > deadline
    if (running.gone || late) {
      running.signal('SIGKILL')
      const how = late ? `was not up within ${UP_WITHIN_MS / 1000} s` : await running.exited
      throw new Error(
        `payoutd did not start, it ${how}. Its log, ${running.logFile}, ends with:\n${await lastLines(running.logFile)}`,
      )
    }
    await delay(20)
  }
}

async function status(url: string): Promise<number | undefined> {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(2_000) })).status
  } catch {
    return undefined
  }
}
