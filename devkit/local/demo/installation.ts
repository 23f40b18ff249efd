import path from 'node:path'
import { type Config, ConfigError, readConfig } from '../../../src/config/config.ts'
import { withAccount } from '../../../src/gateway/dialect/account.ts'
import { migrateAll } from '../../../src/ledger/tables/migrate-all.ts'
import { topicNames } from '../../../src/messages/topics.ts'
import { adoptSettings } from '../../../src/operators/gateway-settings.ts'
import { earlierLedger } from '../../../src/operators/recovery/earlier-ledger.ts'
import { inWords } from '../../../src/platform/dependency-fault.ts'
import { ExpectedFailure } from '../../../src/platform/expected-failure.ts'
import type { Logger } from '../../../src/platform/log.ts'
import { connectDatabase } from '../../../src/platform/postgres/postgres.ts'
import { systemClock } from '../../../src/platform/running/clock.ts'
import { layoutOf } from '../servers/layout.ts'
import { endLeftovers } from '../servers/processes/leftovers.ts'
import type { PortPreference } from '../servers/processes/ports.ts'
import { startWatchdog } from '../servers/processes/watchdog.ts'
import { type PartName, ServerFailed } from '../servers/server.ts'
import type { Given } from '../servers/servers.ts'
import { type Stack, startStack } from '../servers/stack.ts'
import { PayoutdPart } from './payoutd-part.ts'
import { loadSavedDemo } from './saved-demo.ts'
import { type DemoSettings, settingsBefore, settingsFor, sharedSettings, writeSettings } from './settings.ts'

export type Step = PartName | 'tables, topics, schemas' | 'payoutd' | 'servers'
export type OnStep = (step: Step, state: 'starting' | 'ready' | 'stopped') => void

export interface InstallationOptions {
  /** Holds everything of the installation; one installation at a time. */
  dir: string
  /** Deletes all data of earlier runs first. */
  fresh: boolean
  ports: PortPreference
  /**
   * The variables that name servers and settings to use instead of own ones. If they are this process's whole
   * environment, payoutd inherits it; otherwise payoutd gets none of it.
   */
  given: NodeJS.ProcessEnv
  /** Settings of payoutd that differ from the usual ones. */
  settings?: DemoSettings
  log: Logger
  onStep: OnStep
  /** When aborted, the start stops everything again at the next step. */
  signal?: AbortSignal
}

/** A payoutd with everything that it needs. */
export interface Installation {
  readonly stack: Stack
  /** The environment of payoutd and its commands. */
  readonly settings: DemoSettings
  /** The same as a file for `--env-file`. */
  readonly settingsFile: string
  readonly payoutd: PayoutdPart
  /** payoutd first, then the servers. Data stays. */
  stop(): Promise<void>
}

/**
 * Checks the settings, starts the servers, brings them up to date, and starts payoutd in its own process: so it has
 * its own memory, log and crashes, and can come and go while the servers stay. On failure it stops everything again
 * and throws an ExpectedFailure that says what is wrong or did not start, or the signal's reason. Nothing outlives
 * this process, however it ends.
 */
export async function startInstallation(options: InstallationOptions): Promise<Installation> {
  try {
    return await bringUp(options)
  } catch (error) {
    // An error of any other class comes from a library, or is a bug.
    const forPeople =
      error instanceof ServerFailed ||
      error instanceof ConfigError ||
      (error instanceof Error && error.constructor === Error)
    throw forPeople ? new ExpectedFailure(error.message, { cause: error }) : error
  }
}

async function bringUp(options: InstallationOptions): Promise<Installation> {
  const { dir, given, log, onStep, signal } = options
  readConfig({ ...given, ...settingsBefore(given), ...options.settings })
  const stack = await startStack({ ...options, given: addressesIn(given), onProgress: onStep })
  const layout = { ...layoutOf(dir), pids: path.join(layoutOf(dir).dir, 'payoutd.pid') }
  const watchdog = startWatchdog(layout.pids)
  let payoutd: PayoutdPart | undefined
  const stopAll = async () => {
    stack.announceStop()
    if (payoutd) {
      await payoutd.stop()
      onStep('payoutd', 'stopped')
    }
    watchdog.close()
    await stack.stop()
    onStep('servers', 'stopped')
  }
  try {
    signal?.throwIfAborted()
    await endLeftovers(layout, systemClock)
    const kept = await loadSavedDemo(layout.dir, options.ports)
    const settings = {
      ...(await sharedSettings(given)),
      ...settingsFor(stack, kept, given),
      ...options.settings,
    }
    const settingsFile = path.join(layout.dir, 'stack.env')
    await writeSettings(settingsFile, settings)

    onStep('tables, topics, schemas', 'starting')
    const config = readConfig({ ...given, ...settings })
    await migrateAll(config, log).catch((error: unknown) => {
      throw inWords(error, config)
    })
    if (!given.DATABASE_URL && !given.GATEWAY_BASE_URL) await adoptOwn(config)
    onStep('tables, topics, schemas', 'ready')

    signal?.throwIfAborted()
    onStep('payoutd', 'starting')
    const logFile = path.join(layout.logs, 'payoutd.log')
    payoutd = new PayoutdPart(
      { settings, settingsFile, logFile, inherit: given === process.env },
      { watchdog, clock: systemClock },
    )
    await payoutd.start()
    onStep('payoutd', 'ready')
    let stopping: Promise<void> | undefined
    return { stack, settings, settingsFile, payoutd, stop: () => (stopping ??= stopAll()) }
  } catch (error) {
    await stopAll()
    throw error
  }
}

/**
 * The sandbox may have another port than at the last start, or payoutd another dialect: both are local to this
 * machine.
 */
async function adoptOwn({ databaseUrl, merchants, kafka, topicPrefix }: Config): Promise<void> {
  const db = connectDatabase({ url: databaseUrl, connections: 1, applicationName: 'payoutd up' })
  try {
    for (const merchant of merchants.values()) {
      const configured = withAccount(merchant)
      const why = { by: 'payoutd up', reason: "the gateway is this machine's own sandbox" }
      await adoptSettings(db, configured, why, earlierLedger(kafka, topicNames(topicPrefix)))
    }
  } finally {
    await db.close()
  }
}

const addressesIn = (env: NodeJS.ProcessEnv): Given => ({
  databaseUrl: env.DATABASE_URL || undefined,
  kafkaBrokers: env.KAFKA_BROKERS ? env.KAFKA_BROKERS.split(',').map((broker) => broker.trim()) : undefined,
  schemaRegistryUrl: env.SCHEMA_REGISTRY_URL || undefined,
  gatewayBaseUrl: env.GATEWAY_BASE_URL || undefined,
})
