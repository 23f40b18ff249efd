import { Gauge } from 'prom-client'
import type { HttpServer } from '../platform/http.ts'
import type { Metrics } from '../platform/metrics.ts'
import { sendProblem } from './problem.ts'

/** A loop without progress for so long stands still. */
export const STANDS_STILL_MS = 30_000

export type Health = {
  /** By dependency: `ok`, or its fault. */
  dependencies: () => Record<string, string>
  /** By loop: the ms since its last progress; 0 while it has nothing to do. */
  silences: () => ReadonlyMap<string, number>
  /** By loop: for how many ms it has only failed. */
  failures: () => ReadonlyMap<string, number>
  /** Whether all its roles have begun. */
  isUp: () => boolean
}

/**
 * What every process serves on its internal port. `/healthz`: the process runs. `/readyz`: its roles have begun, its dependencies
 * answer and its loops make progress; 503 with reasons otherwise. `/metrics`: Prometheus text.
 */
export function internalRoutes(server: HttpServer, metrics: Metrics, health: Health): void {
  healthRoutes(server, health)
  healthGauges(metrics, health)
  server.get('/metrics', async (_, reply) =>
    reply.type(metrics.registry.contentType).send(await metrics.registry.metrics()),
  )
}

/**
 * What it serves there during the start: `/healthz`, `/readyz`, and 503 with `Retry-After` for any other request, so that no
 * client takes a payin for one that does not exist.
 */
export function startingRoutes(server: HttpServer): void {
  // Close the connection: the next request must reach the server that replaces this one.
  server.addHook('onRequest', async (_, reply) => void reply.header('connection', 'close'))
  healthRoutes(server, {
    dependencies: () => ({}),
    silences: () => new Map(),
    failures: () => new Map(),
    isUp: () => false,
  })
  server.setNotFoundHandler((_, reply) =>
    sendProblem(reply.header('retry-after', '1'), {
      status: 503,
      type: 'starting',
      title: 'payoutd is starting: repeat the request',
    }),
  )
}

function healthRoutes(server: HttpServer, { isUp, dependencies, silences, failures }: Health): void {
  server.get('/healthz', () => ({ status: 'up' }))

  server.get('/readyz', (_, reply) => {
    const readiness = {
      roles: isUp() ? 'ok' : 'starting',
      ...dependencies(),
      loops: loopsState(silences(), failures()),
    }
    const ready = Object.values(readiness).every((state) => state === 'ok')
    return reply.code(ready ? 200 : 503).send(readiness)
  })
}

function loopsState(silences: ReadonlyMap<string, number>, failures: ReadonlyMap<string, number>): string {
  const stalled = [
    ...Array.from(silences, ([name, ms]) => ({ what: `${name} has not progressed`, ms })),
    ...Array.from(failures, ([name, ms]) => ({ what: `${name} has only failed`, ms })),
  ].filter(({ ms }) => ms > STANDS_STILL_MS)
  if (stalled.length === 0) return 'ok'
  return stalled.map(({ what, ms }) => `${what} for ${Math.round(ms / 1000)} s`).join('; ')
}

function healthGauges({ registry }: Metrics, { dependencies, silences, failures }: Health): void {
  new Gauge({
    name: 'payoutd_dependency_up',
    help: '1 while the dependency answers, 0 otherwise',
    labelNames: ['dependency'],
    registers: [registry],
    collect() {
      for (const [dependency, state] of Object.entries(dependencies()))
        this.set({ dependency }, Number(state === 'ok'))
    },
  })
  new Gauge({
    name: 'payoutd_loop_silence_seconds',
    help: 'Time since a loop last made progress; 0 while it has nothing to do',
    labelNames: ['loop'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [loop, ms] of silences()) this.set({ loop }, ms / 1000)
    },
  })
  new Gauge({
    name: 'payoutd_loop_failing_seconds',
    help: 'How long a loop has only failed; absent while it succeeds',
    labelNames: ['loop'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [loop, ms] of failures()) this.set({ loop }, ms / 1000)
    },
  })
}
