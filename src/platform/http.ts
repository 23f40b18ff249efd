import { lookup } from 'node:dns/promises'
import { type FastifyInstance, fastify } from 'fastify'
import { oneRequestAtATime } from './http-connection.ts'

export type { FastifyInstance as HttpServer } from 'fastify'

/** How long a closing server waits for requests: the rest of half a request may never come. */
const GOODBYE_MS = 5_000

/** Node looks for slow requests every 30 s by default, and ends them only then. */
const CHECKED_EVERY_MS = 1_000

/** Longer than the peers' own limit, so that the peer closes first and no request meets a closing connection. */
const KEPT_ALIVE_MS = 72_000

/** Used where connections are few. Node announces this time to the peer and waits one second longer itself. */
const KEPT_ALIVE_BRIEFLY_MS = 5_000

/**
 * An HTTP server with limits for a hostile network. It takes one request of a connection at a time
 * (`HttpConnection`) and bodies up to `bodyLimit` bytes. A whole request must arrive within 10 s, counted from the
 * connection for the first one. Closing takes at most 5 s. The server closes connections beyond `mostConnections`
 * unread, so that no stranger uses up the process's file descriptors. With that limit, a connection ends with an
 * answer that is not a success, and a few seconds after one that is, so that nobody keeps the few connections from
 * everybody else. The server does not listen yet.
 */
export function createHttpServer(
  options: { bodyLimit?: number; maxParamLength?: number; mostConnections?: number } = {},
): FastifyInstance {
  const { mostConnections } = options
  const server = fastify({
    logger: false,
    bodyLimit: options.bodyLimit ?? 64 * 1024,
    http: { connectionsCheckingInterval: CHECKED_EVERY_MS },
    requestTimeout: 10_000,
    keepAliveTimeout: mostConnections === undefined ? KEPT_ALIVE_MS : KEPT_ALIVE_BRIEFLY_MS,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: options.maxParamLength ?? 256 },
  })
  oneRequestAtATime(server.server, mostConnections !== undefined)
  if (mostConnections !== undefined) server.server.maxConnections = mostConnections
  server.addHook('preClose', async () => {
    setTimeout(() => server.server.closeAllConnections(), GOODBYE_MS).unref()
  })
  return server
}

/** Where a server listens. `portSetting` is the setting with which a person chooses another port. */
export type ListenAddress = { host: string; port: number; portSetting?: string }

/**
 * Listens and returns the address as a URL. Port 0 takes any free port. If the port is in use, the error names it
 * and the setting that chooses it.
 */
export async function listen(server: FastifyInstance, at: ListenAddress): Promise<string> {
  try {
    // For "localhost" Fastify starts a second server at the other address, which has none of the limits.
    const { address } = await lookup(at.host)
    return await server.listen({ host: address, port: at.port })
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
