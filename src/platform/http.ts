import { lookup } from 'node:dns/promises'
import { type FastifyInstance, fastify } from 'fastify'
import { oneRequestAtATime } from './http-connection.ts'

export type { FastifyInstance as HttpServer } from 'fastify'

/** How long a server that closes waits for requests: of half a one nothing more may ever come. */
const GOODBYE_MS = 5_000

/** Node ends what takes too long when it looks, and that is every 30 s unless it is told otherwise. */
const CHECKED_EVERY_MS = 1_000

/** For a whole request to arrive. */
const REQUEST_MS = 10_000

/** Where connections are few, one over which nothing goes, such as an answer that nobody reads, ends then. */
const SILENT_MS = 30_000

/** Longer than the peers' own, so that the peer closes first and no request meets a closing connection. */
const KEPT_ALIVE_MS = 72_000

/** Where connections are few. Node tells the peer, and itself waits for a second more. */
const KEPT_ALIVE_BRIEFLY_MS = 5_000

/**
 * An HTTP server with limits for a hostile network: one request of a connection at a time (`HttpConnection`), bodies up to 64 kB, 10 s for a whole
 * request to arrive, counted for the first one from the connection on, and 5 s for what is under way when it closes.
 * Connections beyond `mostConnections` are closed unread, so that no stranger takes the file descriptors of everything
 * else; and so that none takes those few from everybody else, a connection ends with an answer that is no success, with any
 * answer while more than half of them are open, and else some seconds after it. It does not listen yet.
 */
export function createHttpServer({ mostConnections }: { mostConnections?: number } = {}): FastifyInstance {
  const server = fastify({
    logger: false,
    bodyLimit: 64 * 1024,
    http: { connectionsCheckingInterval: CHECKED_EVERY_MS },
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: mostConnections === undefined ? KEPT_ALIVE_MS : KEPT_ALIVE_BRIEFLY_MS,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: 256 },
  })
  // Fastify sets the time for a request once the server is made, and Node has put its own for a head above that by then.
  server.server.headersTimeout = REQUEST_MS
  oneRequestAtATime(server.server, mostConnections)
  if (mostConnections !== undefined) {
    server.server.maxConnections = mostConnections
    server.server.timeout = SILENT_MS
  }
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
    // For "localhost" Fastify starts a second server at its other address, which has none of the limits.
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
