import { readFileSync } from 'node:fs'
import { type Dispatcher, EnvHttpProxyAgent, Pool } from 'undici'
import type { Dialect } from '../dialect/dialect.ts'
import { lookUp } from './addresses.ts'
import { OneConnection } from './one-connection.ts'

/**
 * Paths of PEM files. `caFile` replaces the authorities that Node trusts. `certFile` and `keyFile` go together: the client
 * presents them to a gateway that requires client certificates.
 */
export type TlsFiles = {
  caFile?: string | undefined
  certFile?: string | undefined
  keyFile?: string | undefined
}

const MAX_ANSWER_BYTES = 64 * 1024
/** As in Go's programs: a proxy is for hosts outside this machine, whatever the variables say. */
const LOOPBACK = /^(localhost|127\.[0-9.]+|\[::1\])$/
export const isLoopback = (origin: string): boolean => LOOPBACK.test(new URL(origin).hostname)

/**
 * Kept-alive connections to `origin`, at most `connections`, each with one request at a time. They use the proxy in HTTPS_PROXY
 * or HTTP_PROXY (for an http origin), unless NO_PROXY excepts the host. Throws if a file cannot be read, or if a certificate
 * comes without its key.
 */
export function connectionsTo(
  origin: string,
  connections: number,
  sendTimeoutMs: Dialect['sendTimeoutMs'],
  files: TlsFiles,
): Dispatcher {
  const settings = {
    connections,
    pipelining: 1,
    // HTTP/2 would put many requests on one connection, and hand over their bytes at another moment.
    allowH2: false,
    connectTimeout: sendTimeoutMs.connect,
    headersTimeout: sendTimeoutMs.headers,
    bodyTimeout: sendTimeoutMs.body,
    maxResponseSize: MAX_ANSWER_BYTES,
    factory: (to: URL, options: object) =>
      new OneConnection(to, options as ConstructorParameters<typeof OneConnection>[1]),
  }
  const tls = readTlsFiles(files)
  if (isLoopback(origin)) return new Pool(origin, { ...settings, connect: tls })
  const direct = { ...tls, lookup: lookUp }
  const pool = (to: string | URL, { connect = direct }: { connect?: Pool.Options['connect'] }) =>
    new Pool(to, { ...settings, connect })
  return new EnvHttpProxyAgent({
    connectTimeout: sendTimeoutMs.connect,
    requestTls: { ...tls, allowH2: false },
    proxyTls: { allowH2: false, lookup: lookUp },
    // By default a proxy's pool drops these settings, and waits five minutes for the answer to CONNECT.
    factory: pool,
    clientFactory: (proxy, options) => new Pool(proxy, { ...options, headersTimeout: sendTimeoutMs.connect }),
  })
}

type TlsOptions = { rejectUnauthorized: true; ca?: Buffer; cert?: Buffer; key?: Buffer }

function readTlsFiles({ caFile, certFile, keyFile }: TlsFiles): TlsOptions {
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw new Error('tls: certFile and keyFile go together')
  }
  return {
    // Overrides NODE_TLS_REJECT_UNAUTHORIZED: TLS to an unverified host proves nothing.
    rejectUnauthorized: true,
    ...(caFile !== undefined && { ca: readFileSync(caFile) }),
    ...(certFile !== undefined && { cert: readFileSync(certFile) }),
    ...(keyFile !== undefined && { key: readFileSync(keyFile) }),
  }
}
