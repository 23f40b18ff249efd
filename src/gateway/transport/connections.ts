import { readFileSync } from 'node:fs'
import { type Dispatcher, EnvHttpProxyAgent, Pool } from 'undici'
import type { Dialect } from '../dialect/dialect.ts'
import { lookUp } from './addresses.ts'

/**
 * Paths of PEM files. `caFile` takes the place of the authorities that Node trusts; `certFile` and `keyFile`
 * are what we show to a gateway that wants to know its callers, and go together.
 */
export type TlsFiles = {
  caFile?: string | undefined
  certFile?: string | undefined
  keyFile?: string | undefined
}

const MAX_ANSWER_BYTES = 64 * 1024
/** As for Go's programs: a proxy is for the world outside this machine, whatever the variables say. */
const LOOPBACK = /^(localhost|127\.[0-9.]+|\[::1\])$/
const isLoopback = (origin: string): boolean => LOOPBACK.test(new URL(origin).hostname)

/** Whether what is read from `origin` is what the gateway wrote there: nobody on the way can put in an answer to another request. */
export const vouches = (origin: string): boolean => origin.startsWith('https:') || isLoopback(origin)

/**
 * Kept-alive connections to `origin`, at most `connections`, with one request at a time on each. They go
 * through the proxy that HTTPS_PROXY or HTTP_PROXY (for an http origin) names, unless NO_PROXY excepts the
 * host. Throws when a file cannot be read, or a certificate comes without its key.
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
    // HTTP/2 would put many requests on one connection, and hand their bytes over at another moment.
    allowH2: false,
    connectTimeout: sendTimeoutMs.connect,
    headersTimeout: sendTimeoutMs.headers,
    bodyTimeout: sendTimeoutMs.body,
    maxResponseSize: MAX_ANSWER_BYTES,
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
    // Left to itself a proxy's pool forgets the settings, and waits five minutes for the answer to CONNECT.
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
    // Whatever NODE_TLS_REJECT_UNAUTHORIZED says: TLS to anybody vouches for nothing.
    rejectUnauthorized: true,
    ...(caFile !== undefined && { ca: readFileSync(caFile) }),
    ...(certFile !== undefined && { cert: readFileSync(certFile) }),
    ...(keyFile !== undefined && { key: readFileSync(keyFile) }),
  }
}
