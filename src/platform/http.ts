import { type FastifyInstance, fastify } from 'fastify'

export type { FastifyInstance as HttpServer } from 'fastify'

/** How long a server that closes waits for requests: of half a one nothing more may ever come. */
const GOODBYE_MS = 5_000

/** Node ends what takes too long when it looks, and that is every 30 s unless it is told otherwise. */
const CHECKED_EVERY_MS = 1_000

/**
 * An HTTP server with limits for a hostile network: bodies up to `bodyLimit` bytes, 10 s for a whole
 * request to arrive, counted for the first one from the connection on, keep-alive longer than the peers' own (so that the
 * peer closes first and no request meets a closing connection), and 5 s for what is under way when it closes. Connections
 * beyond `mostConnections` are closed unread, so that no stranger takes the file descriptors of everything else. It does not
 * listen yet.
 */
export function createHttpServer(
  options: { bodyLimit?: number; maxParamLength?: number; mostConnections?: number } = {},
): FastifyInstance {
  const server = fastify({
    logger: false,
    bodyLimit: options.bodyLimit ?? 64 * 1024,
    http: { connectionsCheckingInterval: CHECKED_EVERY_MS },
    requestTimeout: 10_000,
    keepAliveTimeout: 72_000,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: options.maxParamLength ?? 256 },
  })
  if (options.mostConnections !== undefined) server.server.maxConnections = options.mostConnections
  server.addHook('preClose', async () => {
    setTimeout(() => server.server.closeAllConnections(), GOODBYE_MS).unref()
  })
  return server
}

/** Where a server listens. `portSetting` is what a person sets to choose another port. */
export type ListenAddress = { host: string; port: number; portSetting?: string }

/**
 * Listens and returns the address as a URL. Port 0 takes any free port; a port that is taken is an error
 * that names it, and the setting that chooses it.
 */
export async function listen(server: FastifyInstance, at: ListenAddress): Promise<string> {
  try {
    return await server.listen(at)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') {
      const choose = at.portSetting ? `set ${at.portSetting} to another one` : 'choose another port'
      throw new Error(`port ${at.port} on ${at.host} is taken: stop what uses it, or ${choose}`, {
        cause: error,
      })
    }
    throw error
  }
}
