import { readFileSync } from 'node:fs';
import { EnvHttpProxyAgent, Pool } from 'undici';
const MAX_ANSWER_BYTES = 64 * 1024;
/** As for Go's programs: a proxy is for the world outside this machine, whatever the variables say. */
const LOOPBACK = /^(localhost|127\.[0-9.]+|\[::1\])$/;
/**
 * Kept-alive connections to `origin`, at most `connections`, with one request at a time on each. They go
 * through the proxy that HTTPS_PROXY or HTTP_PROXY (for an http origin) names, unless NO_PROXY excepts the
 * host. Throws when a file cannot be read, or a certificate comes without its key.
 */
export function connectionsTo(origin, connections, sendTimeoutMs, files) {
    const settings = {
        connections,
        pipelining: 1,
        // HTTP/2 would put many requests on one connection, and hand their bytes over at another moment.
        allowH2: false,
        connectTimeout: sendTimeoutMs.connect,
        headersTimeout: sendTimeoutMs.headers,
        bodyTimeout: sendTimeoutMs.body,
        maxResponseSize: MAX_ANSWER_BYTES,
    };
    const tls = readTlsFiles(files);
    if (LOOPBACK.test(new URL(origin).hostname))
        return new Pool(origin, { ...settings, connect: tls });
    const pool = (to, { connect = tls }) => new Pool(to, { ...settings, connect });
    return new EnvHttpProxyAgent({
        connectTimeout: sendTimeoutMs.connect,
        requestTls: { ...tls, allowH2: false },
        proxyTls: { allowH2: false },
        // Left to itself a proxy's pool forgets the settings, and waits five minutes for the answer to CONNECT.
        factory: pool,
        clientFactory: (proxy, options) => new Pool(proxy, { ...options, headersTimeout: sendTimeoutMs.connect }),
    });
}
function readTlsFiles({ caFile, certFile, keyFile }) {
    if ((certFile === undefined) !== (keyFile === undefined)) {
        throw new Error('tls: certFile and keyFile go together');
    }
    return {
        ...(caFile !== undefined && { ca: readFileSync(caFile) }),
        ...(certFile !== undefined && { cert: readFileSync(certFile) }),
        ...(keyFile !== undefined && { key: readFileSync(keyFile) }),
    };
}
