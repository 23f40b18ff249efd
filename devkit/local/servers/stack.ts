import { mkdir, rm } from 'node:fs/promises'
import path from 'node:path'
import type { Logger } from '../../../src/platform/log.ts'
import { systemClock } from '../../../src/platform/running/clock.ts'
import type { Addresses } from './addresses.ts'
import type { Tuning } from './java.ts'
import { layoutOf } from './layout.ts'
import { type Progress, ServerParts } from './parts.ts'
import { endLeftovers } from './processes/leftovers.ts'
import { lockDirectory } from './processes/lock.ts'
import { type PortPreference, Ports } from './processes/ports.ts'
import { startWatchdog } from './processes/watchdog.ts'
import { loadSecrets } from './secrets.ts'
import type { PartName } from './server.ts'
import { type Given, startServers } from './servers.ts'

export interface StackOptions {
  /** Where its data, logs and settings live; one stack at a time. */
  dir: string
  /** Deletes all data of earlier runs first. */
  fresh?: boolean
  /** Servers not to start; their addresses are passed through. */
  given?: Given
  /** `false`: no gateway, unless one is given. */
  sandbox?: boolean
  /** Default: usual. */
  ports?: PortPreference
  /** Default: demo. */
  tuning?: Tuning
  log: Logger
  onProgress?: Progress
}

export interface Stack extends Addresses {
  /** The process of each server that this stack started and that runs now. */
  readonly pids: Partial<Record<PartName, number>>
  /** Kills one server with SIGKILL, like a crash. */
  kill(part: PartName): Promise<void>
  /** Starts one server again on its port and data; one that still runs is stopped first. */
  restart(part: PartName): Promise<void>
  /**
   * For an owner that must stop something else first: other starts in the directory learn that this stack is
   * stopping.
   */
  announceStop(): void
  /** Stops all servers and unlocks the directory. Data stays. */
  stop(): Promise<void>
}

/**
 * Starts PostgreSQL, Kafka, the schema registry and the gateway sandbox, real servers on the loopback address, and
 * resolves when all of them work. If a server ends unasked later, the stack logs an error. Throws if the directory
 * is in use or a server does not start, and then leaves nothing running. No server outlives this process, however
 * it ends.
 */
export async function startStack(options: StackOptions): Promise<Stack> {
  const layout = layoutOf(options.dir)
  await mkdir(layout.logs, { recursive: true })
  const lock = lockDirectory(layout.dir)
  const host = { watchdog: startWatchdog(layout.pids), clock: systemClock }
  const ports = await Ports.load(path.join(layout.dir, 'ports.json'), options.ports ?? 'usual')
  const parts = new ServerParts(ports, options.log, options.onProgress ?? (() => undefined))
  let stopping: Promise<void> | undefined
  const stop = async () => {
    lock.announceStop()
    await parts.stop()
    host.watchdog.close()
    lock.release()
  }
  try {
    await endLeftovers(layout, systemClock)
    if (options.fresh) await rm(layout.data, { recursive: true, force: true })
    const addresses = await startServers(parts, {
      layout,
      host,
      secrets: await loadSecrets(layout),
      tuning: options.tuning ?? 'demo',
      given: options.given ?? {},
      withSandbox: options.sandbox ?? true,
    })
    return {
      ...addresses,
      get pids() {
        return parts.pids
      },
      kill: (name) => parts.get(name).kill(),
      restart: async (name) => {
        await parts.get(name).stop()
        await parts.get(name).start()
      },
      announceStop: () => lock.announceStop(),
      stop: () => (stopping ??= stop()),
    }
  } catch (error) {
    await stop()
    throw error
  }
}
