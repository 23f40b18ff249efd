import { fastify } from 'fastify';
/**
 * An HTTP server with limits for a hostile network: bodies up to `bodyLimit` bytes, 10 s for a whole
 * request to arrive, keep-alive longer than the peers' own (so that the peer closes first and no request
 * meets a closing connection). It does not listen yet.
 */
export function createHttpServer(options = {}) {
    return fastify({
        logger: false,
        bodyLimit: options.bodyLimit ?? 64 * 1024,
        requestTimeout: 10_000,
        keepAliveTimeout: 72_000,
        forceCloseConnections: 'idle',
        routerOptions: { maxParamLength: options.maxParamLength ?? 256 },
    });
}
/**
 * Listens and returns the address as a URL. Port 0 takes any free port; a port that is taken is an error
 * that names it, and the setting that chooses it.
 */
export async function listen(server, at) {
    try {
        return await server.listen(at);
    }
    catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') {
            const choose = at.portSetting ? `set ${at.portSetting} to another one` : 'choose another port';
            throw new Error(`port ${at.port} on ${at.host} is taken: stop what uses it, or ${choose}`, {
                cause: error,
            });
        }
        throw error;
    }
}
