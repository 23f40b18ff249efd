import type { HttpServer } from '../platform/http.ts'
import type { Metrics } from '../platform/metrics.ts'

/** A dependency and how to find out whether it answers; rejects when it does not. */
export type Checks = Record<string, () => Promise<unknown>>

/**
 * What every process has on its internal port. `/healthz`: the process runs. `/readyz`: what it needs
 * answers, 503 with names otherwise. `/metrics`: Prometheus text.
 */
export function internalRoutes(server: HttpServer, metrics: Metrics, checks: Checks): void {
  server.get('/healthz', () => ({ status: 'up' }))

  server.get('/readyz', async (_, reply) => {
    const results = await Promise.all(
      Object.entries(checks).map(async ([name, check]) => {
        try {
          await check()
          return [name, 'ok'] as const
        } catch (error) {
          return [name, error instanceof Error ? error.message : String(error)] as const
        }
      }),
    )
    const ready = results.every(([, state]) => state === 'ok')
    return reply.code(ready ? 200 : 503).send(Object.fromEntries(results))
  })

  server.get('/metrics', async (_, reply) =>
    reply.type(metrics.registry.contentType).send(await metrics.registry.metrics()),
  )
}
