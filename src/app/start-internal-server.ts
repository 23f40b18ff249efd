import type { Config } from '../config/config.ts'
import { Dependencies } from '../http/dependencies.ts'
import { internalRoutes, startingRoutes } from '../http/internal-routes.ts'
import { payinRoutes } from '../http/routes.ts'
import { addressesOf, dependencyFaultOf, inOneLine } from '../platform/dependency-fault.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import { createHttpServer, type HttpServer, listen } from '../platform/http.ts'
import { kafkaPing } from '../platform/kafka/ping.ts'
import { silentLogger } from '../platform/log.ts'
import { awaitedStandbys } from '../platform/postgres/awaited-standbys.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import type { Lifecycle } from '../platform/running/lifecycle.ts'
import { ledgerMetrics } from '../queries/ledger-metrics.ts'
import type { Shared } from './shared.ts'
import { collecting } from './start-payins.ts'

/**
 * Serves health on the internal port during the start: a supervisor must not kill a process whose start is still
 * waiting.
 */
export async function serveWhileStarting({ internalAt }: Config, lifecycle: Lifecycle): Promise<HttpServer> {
  const server = createHttpServer()
  startingRoutes(server)
  await listen(server, internalAt)
  lifecycle.own('internal server of the start', () => server.close())
  return server
}

/** Rejects if it does not answer, or if its commits wait for a standby that does not. */
async function askPostgres(db: Database): Promise<void> {
  const [found] = await db.run(awaitedStandbys, {})
  if (found?.names)
    throw new ExpectedFailure(
      `commits wait for a standby that does not answer (${found.names}): see payoutd doctor`,
    )
}

export async function serveInternally(
  shared: Shared,
  notifyAt: string,
  isUp: () => boolean,
): Promise<string> {
  const { config, metrics, ledger, lifecycle, gateways, clock, log } = shared
  const server = createHttpServer()
  ledgerMetrics(metrics, ledger.db)
  const kafka = kafkaPing(config.kafka, silentLogger)
  lifecycle.own('Kafka ping', () => kafka.close())
  const dependencies = new Dependencies({
    checks: { Postgres: () => askPostgres(ledger.db), Kafka: () => kafka.ping() },
    words: (error) => {
      const dependencyFault = dependencyFaultOf(error, addressesOf(config))
      if (dependencyFault) return inOneLine(dependencyFault)
      return error instanceof ExpectedFailure ? error.message : String(error)
    },
    clock,
    log,
  })
  lifecycle.loop('dependencies', () => dependencies.turn())
  internalRoutes(server, metrics, {
    dependencies: () => dependencies.states(),
    silences: () => lifecycle.heartbeats.silences(),
    failures: () => lifecycle.heartbeats.failures(),
    isUp,
  })
  payinRoutes(server, collecting({ config, ledger, gateways, clock, notifyAt, log }))
  const url = await listen(server, config.internalAt)
  lifecycle.own('internal server', () => server.close())
  return url
}
