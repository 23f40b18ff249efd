import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { type Clock, systemClock } from '../../platform/running/clock.ts'
import { startServer } from '../testing.ts'
import type { TlsFiles } from './connections.ts'
import { createTransport, type SentRequest, type Transport } from './transport.ts'

const REQUEST = { path: '/apply', contentType: 'application/x-www-form-urlencoded', body: 'a=1&sign=2' }
const PATIENT = { connect: 30_000, headers: 30_000, body: 30_000 }
const yes = () => true

function transportTo(
  t: TestContext,
  origin: string,
  options: { connections?: number; clock?: Clock; impatient?: Partial<typeof PATIENT>; tls?: TlsFiles } = {},
): Transport {
  const { connections = 4, clock = systemClock, impatient, tls = {} } = options
  const sendTimeoutMs = { ...PATIENT, ...impatient }
  const transport = createTransport({ origin, connections, sendTimeoutMs, tls, clock })
  t.after(() => transport.close())
  return transport
}

/** A raw server: each connection as it comes, and the number of bytes that arrived on all of them. */
async function startSocketServer(
  t: TestContext,
  connected: (socket: Socket, number: number) => void,
  server: Server = createServer(),
) {
  const arrived = { bytes: 0, requests: 0, sockets: [] as Socket[] }
  server.on('connection', (socket: Socket) => {
    arrived.sockets.push(socket)
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      arrived.bytes += chunk.length
      arrived.requests += chunk.toString('latin1').split('POST ').length - 1
    })
    connected(socket, arrived.sockets.length)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of arrived.sockets) socket.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  return { port: (server.address() as AddressInfo).port, arrived }
}

const answer = (socket: Socket, body: string, status = '200 OK', headers = '') =>
  socket.write(`HTTP/1.1 ${status}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`)

const summary = (sent: SentRequest) =>
  sent.kind === 'answered' ? `answered ${sent.httpStatus}` : `${sent.kind} ${sent.reason}`

test('sends nothing to a server that does not listen', async (t) => {
  const free = createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const unused = (free.address() as AddressInfo).port
  await new Promise((resolve) => free.close(resolve))
  const sent = await transportTo(t, `http://127.0.0.1:${unused}`).send(REQUEST, yes)
  assert.equal(summary(sent), 'not-sent connection-refused')
})

test('sends nothing to a host without an address', async (t) => {
  const sent = await transportTo(t, 'http://gateway.invalid').send(REQUEST, yes)
  assert.equal(sent.kind, 'not-sent')
})

test('sends nothing of the request to a server that does not speak TLS', async (t) => {
  const { port, arrived } = await startSocketServer(t, (socket) => {
    socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  })
  const sent = await transportTo(t, `https://127.0.0.1:${port}`).send(REQUEST, yes)
  assert.equal(summary(sent), 'not-sent tls')
  assert.equal(arrived.requests, 0)
})

test('a TLS handshake that the server breaks off leaves the request unsent', async (t) => {
  // Without a certificate the two sides share no cipher.
  const server = createTlsServer({})
  let requests = 0
  server.on('secureConnection', () => requests++)
  const { port } = await startSocketServer(t, () => undefined, server)
  const sent = await transportTo(t, `https://127.0.0.1:${port}`).send(REQUEST, yes)
  assert.equal(summary(sent), 'not-sent tls')
  assert.equal(requests, 0)
})

test('a TLS handshake that never ends is a connect timeout, with nothing sent', async (t) => {
  const { port, arrived } = await startSocketServer(t, () => undefined)
  const sent = await transportTo(t, `https://127.0.0.1:${port}`, { impatient: { connect: 200 } }).send(
    REQUEST,
    yes,
  )
  assert.equal(summary(sent), 'not-sent connect-timeout')
  assert.equal(arrived.requests, 0)
})

test('a connection that is reset as soon as it is made is never called unsent if a byte arrived', async (t) => {
  const { port, arrived } = await startSocketServer(t, (socket) => socket.resetAndDestroy())
  const transport = transportTo(t, `http://127.0.0.1:${port}`)
  for (let i = 0; i < 20; i++) {
    const before = arrived.bytes
    const sent = await transport.send(REQUEST, yes)
    assert.notEqual(sent.kind, 'answered')
    if (sent.kind === 'not-sent') assert.equal(arrived.bytes, before)
  }
})

test('a connection that is reset before the server reads leaves the result unknown', async (t) => {
  const { port, arrived } = await startSocketServer(t, (socket) => {
    socket.on('data', () => answer(socket, '{}'))
  })
  const transport = transportTo(t, `http://127.0.0.1:${port}`, { connections: 1 })
  assert.equal(summary(await transport.send(REQUEST, yes)), 'answered 200')
  const sent = await transport.send(REQUEST, () => {
    // In the same tick that hands over the bytes.
    arrived.sockets[0]?.resetAndDestroy()
    return true
  })
  assert.equal(summary(sent), 'lost connection-lost')
  assert.equal(arrived.requests, 1)
})

test('a server that reads the request and hangs up leaves the result unknown, and does not get it again', async (t) => {
  const { port, arrived } = await startSocketServer(t, (socket) => {
    socket.on('data', () => socket.end())
  })
  const sent = await transportTo(t, `http://127.0.0.1:${port}`).send(REQUEST, yes)
  assert.equal(summary(sent), 'lost connection-lost')
  assert.equal(arrived.requests, 1)
})

test('replaces a kept connection that the server closed meanwhile, and each request arrives once', async (t) => {
  const { port, arrived } = await startSocketServer(t, (socket) => {
    socket.on('data', () => answer(socket, '{}'))
  })
  const transport = transportTo(t, `http://127.0.0.1:${port}`, { connections: 1 })
  for (let i = 1; i <= 20; i++) {
    assert.equal(summary(await transport.send(REQUEST, yes)), 'answered 200')
    assert.equal(arrived.requests, i)
    const [socket] = arrived.sockets.slice(-1)
    const closed = once(socket as Socket, 'close')
    socket?.end()
    await closed
  }
  assert.equal(arrived.sockets.length, 20)
})

test('keeps connections, and opens no more than allowed', async (t) => {
  const { port, arrived } = await startSocketServer(t, (socket) => {
    socket.on('data', () => setImmediate(() => answer(socket, '{}')))
  })
  const transport = transportTo(t, `http://127.0.0.1:${port}`, { connections: 2 })
  const all = await Promise.all(Array.from({ length: 20 }, () => transport.send(REQUEST, yes)))
  assert.ok(all.every(({ kind }) => kind === 'answered'))
  assert.equal(arrived.requests, 20)
  assert.equal(arrived.sockets.length, 2)
})

test('sends no byte after the lease has ended, and the connection serves the next request', async (t) => {
  const { url, seen } = await startServer(t, (_, response) => response.end('{}'))
  const transport = transportTo(t, url, { connections: 1 })
  assert.equal(summary(await transport.send(REQUEST, () => false)), 'not-sent lease-ended')
  assert.equal(summary(await transport.send(REQUEST, yes)), 'answered 200')
  assert.equal(summary(await transport.send(REQUEST, () => false)), 'not-sent lease-ended')
  assert.equal(summary(await transport.send(REQUEST, yes)), 'answered 200')
  assert.equal(seen.length, 2)
})

test('checks the lease when the bytes go, not when the request begins to wait for a connection', async (t) => {
  let release = () => undefined as unknown
  const { url, seen } = await startServer(t, (_, response) => {
    release = () => response.end('{}')
  })
  const transport = transportTo(t, url, { connections: 1 })
  let leased = true
  const first = transport.send(REQUEST, () => leased)
  const second = transport.send(REQUEST, () => leased)
  while (seen.length === 0) await new Promise((resolve) => setImmediate(resolve))
  leased = false
  release()
  assert.equal(summary(await first), 'answered 200')
  assert.equal(summary(await second), 'not-sent lease-ended')
  assert.equal(seen.length, 1)
})

test('a redirect is an answer, and is not followed', async (t) => {
  const { url, seen } = await startServer(t, (_, response) => {
    response.writeHead(307, { location: '/elsewhere' }).end()
  })
  assert.equal(summary(await transportTo(t, url).send(REQUEST, yes)), 'answered 307')
  assert.equal(seen.length, 1)
})

test('no answer in time is a timeout: the request may have arrived', async (t) => {
  const { url, seen } = await startServer(t, () => undefined)
  assert.equal(
    summary(await transportTo(t, url, { impatient: { headers: 200 } }).send(REQUEST, yes)),
    'lost timeout',
  )
  assert.equal(seen.length, 1)
})

test('a body that stops half-way is a timeout that keeps the status', async (t) => {
  const { url } = await startServer(t, (_, response) => response.writeHead(200).write('{"retCode":'))
  const sent = await transportTo(t, url, { impatient: { body: 200 } }).send(REQUEST, yes)
  assert.equal(summary(sent), 'lost timeout')
  assert.equal(sent.kind === 'lost' && sent.httpStatus, 200)
})

/** Each reading is 200 ms later than the last. */
const hurrying = (): Clock => {
  let now = 0
  return { now: () => 0, monotonic: () => (now += 200) }
}

test('a body that drips for ever is a timeout, though it never pauses', async (t) => {
  const { port } = await startSocketServer(t, (socket) => {
    const drip = () => {
      if (!socket.destroyed) socket.write(' ', () => setImmediate(drip))
    }
    socket.on('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 60000\r\n\r\n')
      drip()
    })
  })
  const sent = await transportTo(t, `http://127.0.0.1:${port}`, {
    clock: hurrying(),
    impatient: { body: 1_000 },
  }).send(REQUEST, yes)
  assert.equal(summary(sent), 'lost timeout')
})

test('interim answers for ever are a timeout too', async (t) => {
  const { port } = await startSocketServer(t, (socket) => {
    const drip = () => {
      if (!socket.destroyed) socket.write('HTTP/1.1 102 Processing\r\n\r\n', () => setImmediate(drip))
    }
    socket.on('data', drip)
  })
  const sent = await transportTo(t, `http://127.0.0.1:${port}`, {
    clock: hurrying(),
    impatient: { headers: 1_000 },
  }).send(REQUEST, yes)
  assert.equal(summary(sent), 'lost timeout')
})

const FLOODS = {
  'interim answers': 'HTTP/1.1 103 \r\n\r\n'.repeat(400),
  'pieces of a body': `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(400)}`,
}
for (const [what, flood] of Object.entries(FLOODS))
  test(`an answer in hundreds of ${what} is unreadable, and its connection ends`, async (t) => {
    const ended = Promise.withResolvers<void>()
    const { port } = await startSocketServer(t, (socket) => {
      socket.on('data', () => socket.write(flood)).on('close', () => ended.resolve())
    })
    const sent = await transportTo(t, `http://127.0.0.1:${port}`).send(REQUEST, yes)
    assert.equal(summary(sent), 'lost unparsable')
    await ended.promise
  })

test('an answer of more than 64 KB is unreadable', async (t) => {
  const { url } = await startServer(t, (seen, response) => {
    response.end('x'.repeat(seen.path === '/big' ? 65_537 : 65_536))
  })
  const transport = transportTo(t, url)
  assert.equal(summary(await transport.send({ ...REQUEST, path: '/big' }, yes)), 'lost unparsable')
  assert.equal(summary(await transport.send(REQUEST, yes)), 'answered 200')
})

test('an answer that is not HTTP is unreadable', async (t) => {
  const { port } = await startSocketServer(t, (socket) => {
    socket.on('data', () => socket.write('hello\r\n\r\n'))
  })
  const sent = await transportTo(t, `http://127.0.0.1:${port}`).send(REQUEST, yes)
  assert.equal(summary(sent), 'lost unparsable')
})

test('closing waits for requests under way, and sends nothing more', async (t) => {
  let release = () => undefined as unknown
  const { url, seen } = await startServer(t, (_, response) => {
    release = () => response.end('{}')
  })
  const transport = transportTo(t, url, { connections: 1 })
  const first = transport.send(REQUEST, yes)
  while (seen.length === 0) await new Promise((resolve) => setImmediate(resolve))
  const closed = transport.close()
  assert.equal(summary(await transport.send(REQUEST, yes)), 'not-sent client-closed')
  release()
  assert.equal(summary(await first), 'answered 200')
  await closed
})
