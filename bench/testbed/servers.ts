import path from 'node:path'
import type { Host } from '../../devkit/local/servers/processes/process.ts'
import { startWatchdog } from '../../devkit/local/servers/processes/watchdog.ts'
import { type Stack, startStack } from '../../devkit/local/servers/stack.ts'
import { createLogger, type Logger } from '../../src/platform/log.ts'
import { systemClock } from '../../src/platform/running/clock.ts'

/** The servers that all runs share, and where files go. */
export type BenchServers = {
  stack: Stack
  host: Host
  logs: string
  /** Emptied at every start. */
  data: string
  log: Logger
}

/** Starts the servers in `dir`, without data of earlier runs, and stops them whether or not `work` succeeds. */
export async function onFreshServers(
  dir: string,
  work: (servers: BenchServers) => Promise<void>,
): Promise<void> {
  const log = createLogger({ name: 'bench', level: 'warn', destination: 2 })
  const stack = await startStack({ dir, fresh: true, sandbox: false, ports: 'any', tuning: 'bench', log })
  const watchdog = startWatchdog(path.join(dir, 'workers'))
  try {
    const host = { watchdog, clock: systemClock }
    await work({ stack, host, logs: path.resolve(dir, 'logs'), data: path.resolve(dir, 'data', 'runs'), log })
  } finally {
    watchdog.close()
    await stack.stop()
  }
}
