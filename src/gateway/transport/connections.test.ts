import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { createServer as createTlsServer, type ServerOptions } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, type TestContext, test } from 'node:test'
import { systemClock } from '../../platform/running/clock.ts'
import { startServer } from '../testing.ts'
import { selfSigned } from '../testing-certificate.ts'
import { isLoopback, type TlsFiles } from './connections.ts'
import { createTransport, type SentRequest } from './transport.ts'

const REQUEST = { path: '/apply', contentType: 'application/x-www-form-urlencoded', body: 'a=1&sign=2' }
/** A name that only a proxy can resolve. */
const HOST = 'gateway.invalid'
const yes = () => true

const summary = (sent: SentRequest) =>
  sent.kind === 'answered' ? `answered ${sent.httpStatus}` : `${sent.kind} ${sent.reason}`

function transportTo(t: TestContext, origin: string, tls: TlsFiles = {}, connectMs = 30_000) {
  const sendTimeoutMs = { connect: connectMs, headers: 30_000, body: 30_000 }
  const transport = createTransport({ origin, connections: 1, sendTimeoutMs, tls, clock: systemClock })
  t.after(() => transport.close())
  return transport
}

/** Sets these proxy variables and clears all others of the machine. */
function setProxies(variables: Record<string, string>) {
  for (const name of ['http_proxy', 'https_proxy', 'no_proxy']) {
    delete process.env[name]
    delete process.env[name.toUpperCase()]
  }
  Object.assign(process.env, variables)
}

beforeEach(() => setProxies({}))

async function listen(t: TestContext, server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

/** A gateway behind TLS that records its callers. */
async function startTlsGateway(t: TestContext, options: ServerOptions = {}) {
  const { cert, key } = selfSigned(HOST)
  const requests: string[] = []
  const server = createTlsServer({ cert, key, ...options }, (request, response) => {
    requests.push(`${request.method} ${request.url}`)
    response.end('{}')
  })
  return { port: await listen(t, server), cert, requests }
}

/** A proxy that leads every tunnel to `port`, whatever host the client asked for, or answers CONNECT with a status. */
async function startProxy(t: TestContext, port: number, status = 200) {
  const seen: string[] = []
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`)
    response.end('{}')
  })
  server.on('connect', (request, socket) => {
    seen.push(`CONNECT ${request.url}`)
    if (status === 0) return
    socket.write(`HTTP/1.1 ${status} Said\r\n\r\n`)
    if (status !== 200) return socket.end()
    const onward = connect(port, '127.0.0.1')
    onward.on('error', () => socket.destroy())
    socket.on('error', () => onward.destroy())
    socket.on('close', () => onward.destroy())
    onward.pipe(socket).pipe(onward)
  })
  return { url: `http://127.0.0.1:${await listen(t, server)}`, seen }
}

function fileOf(t: TestContext, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'pem-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'it.pem')
  writeFileSync(file, text)
  return file
}

test('a gateway with an untrusted certificate is sent nothing, until its authority is given', async (t) => {
  const { port, cert, requests } = await startTlsGateway(t)
  const origin = `https://127.0.0.1:${port}`
  assert.equal(summary(await transportTo(t, origin).send(REQUEST, yes)), 'not-sent tls')
  assert.deepEqual(requests, [])
  const trusting = transportTo(t, origin, { caFile: fileOf(t, cert) })
  assert.equal(summary(await trusting.send(REQUEST, yes)), 'answered 200')
  assert.deepEqual(requests, ['POST /apply'])
})

test('NODE_TLS_REJECT_UNAUTHORIZED lets nobody impersonate the gateway', async (t) => {
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  t.after(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED)
  const { port, requests } = await startTlsGateway(t)
  const sent = await transportTo(t, `https://127.0.0.1:${port}`).send(REQUEST, yes)
  assert.deepEqual([sent.kind, requests], ['not-sent', []])
})

test('only an address of this machine is one', () => {
  for (const origin of ['http://localhost:8790', 'http://127.0.0.2', 'http://[::1]:80'])
    assert.equal(isLoopback(origin), true, origin)
  for (const origin of ['http://sandbox:8790', 'http://10.0.0.1', 'http://127.0.0.1.example', 'http://[::2]'])
    assert.equal(isLoopback(origin), false, origin)
})

test('presents the client certificate to a gateway that requires one', async (t) => {
  const ours = selfSigned('payoutd.invalid')
  const { port, cert, requests } = await startTlsGateway(t, { requestCert: true, ca: ours.cert })
  const origin = `https://127.0.0.1:${port}`
  const caFile = fileOf(t, cert)
  assert.notEqual((await transportTo(t, origin, { caFile }).send(REQUEST, yes)).kind, 'answered')
  assert.deepEqual(requests, [])
  const known = { caFile, certFile: fileOf(t, ours.cert), keyFile: fileOf(t, ours.key) }
  assert.equal(summary(await transportTo(t, origin, known).send(REQUEST, yes)), 'answered 200')
})

test('a certificate without its key, or a missing file, is reported when the client is created', (t) => {
  const origin = 'https://gateway.invalid'
  assert.throws(() => transportTo(t, origin, { certFile: 'a.pem' }), /certFile and keyFile go together/)
  assert.throws(() => transportTo(t, origin, { caFile: '/nowhere/ca.pem' }), /\/nowhere\/ca\.pem/)
})

test('reaches an https gateway through a tunnel of HTTPS_PROXY, and keeps the tunnel', async (t) => {
  const { port, cert, requests } = await startTlsGateway(t)
  const proxy = await startProxy(t, port)
  setProxies({ HTTPS_PROXY: proxy.url })
  const transport = transportTo(t, `https://${HOST}`, { caFile: fileOf(t, cert) })
  assert.equal(summary(await transport.send(REQUEST, yes)), 'answered 200')
  assert.equal(summary(await transport.send(REQUEST, yes)), 'answered 200')
  assert.deepEqual(proxy.seen, [`CONNECT ${HOST}:443`])
  assert.deepEqual(requests, ['POST /apply', 'POST /apply'])
})

test('through a tunnel too it checks the lease when the bytes go, and sends no byte without it', async (t) => {
  const { port, cert, requests } = await startTlsGateway(t)
  const proxy = await startProxy(t, port)
  setProxies({ HTTPS_PROXY: proxy.url })
  const transport = transportTo(t, `https://${HOST}`, { caFile: fileOf(t, cert) })
  let tunnelsWhenAsked = 0
  const sent = await transport.send(REQUEST, () => {
    tunnelsWhenAsked = proxy.seen.length
    return false
  })
  assert.equal(summary(sent), 'not-sent lease-ended')
  assert.equal(tunnelsWhenAsked, 1)
  assert.equal(summary(await transport.send(REQUEST, yes)), 'answered 200')
  assert.equal(requests.length, 1)
})

test('a proxy that refuses the tunnel, or never answers, leaves the request unsent', async (t) => {
  const { port, requests } = await startTlsGateway(t)
  const sendThrough = async (status: number, connectMs: number) => {
    setProxies({ HTTPS_PROXY: (await startProxy(t, port, status)).url })
    return summary(await transportTo(t, `https://${HOST}`, {}, connectMs).send(REQUEST, yes))
  }
  assert.equal(await sendThrough(403, 30_000), 'not-sent connection-failed')
  assert.equal(await sendThrough(0, 200), 'not-sent connect-timeout')
  assert.deepEqual(requests, [])
})

test('calls an http gateway through HTTP_PROXY by its full address', async (t) => {
  const proxy = await startProxy(t, 0)
  setProxies({ HTTP_PROXY: proxy.url })
  const transport = transportTo(t, `http://${HOST}`)
  assert.equal(summary(await transport.send(REQUEST, () => false)), 'not-sent lease-ended')
  assert.equal(summary(await transport.send(REQUEST, yes)), 'answered 200')
  assert.deepEqual(proxy.seen, [`POST http://${HOST}/apply`])
})

test('reaches NO_PROXY hosts and this machine directly', async (t) => {
  const proxy = await startProxy(t, 0)
  const { url, seen } = await startServer(t, (_, response) => response.end('{}'))
  setProxies({ HTTP_PROXY: proxy.url, NO_PROXY: HOST })
  assert.equal(summary(await transportTo(t, url).send(REQUEST, yes)), 'answered 200')
  assert.equal(seen.length, 1)
  assert.equal((await transportTo(t, `http://${HOST}`).send(REQUEST, yes)).kind, 'not-sent')
  assert.deepEqual(proxy.seen, [])
})
