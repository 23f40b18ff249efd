import assert from 'node:assert/strict'
import diagnostics from 'node:diagnostics_channel'
import dns from 'node:dns'
import { once } from 'node:events'
import net from 'node:net'
import { suite, type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { createHttpServer, type HttpServer, listen } from './http.ts'

suite('a server for a hostile network', { concurrency: true, timeout: 20_000 }, () => {
  test('half a request keeps it from closing for some seconds only', async (t) => {
    const { server, connect } = await serving(t, createHttpServer())
    const arrived = once(server.server, 'connection')
    connect().write('POST /callbacks HTTP/1.1\r\nhost: x\r\n')
    await arrived
    await server.close()
  })

  test('a connection that says nothing is closed after 10 s', { timeout: 15_000 }, async (t) => {
    const { connect } = await serving(t, createHttpServer())
    await once(connect().resume(), 'close')
  })

  test('a request may be in hand for longer than one may take to arrive', async (t) => {
    const server = createHttpServer()
    server.get('/', async () => {
      await new Promise((resolve) => setTimeout(resolve, 11_000))
      return 'done'
    })
    const { connect } = await serving(t, server)
    const socket = connect()
    socket.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
    assert.match(await textOf(socket), /^HTTP\/1.1 200 .*done$/s)
  })

  test('connections beyond the most are closed, and those before them are served', async (t) => {
    const server = createHttpServer({ mostConnections: 1 })
    server.get('/', async () => 'served')
    const { connect } = await serving(t, server)
    const first = connect()
    await once(first, 'connect')
    await once(connect(), 'close')
    first.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    const [received] = await once(first, 'data')
    assert.match(String(received), /^HTTP\/1.1 200 /)
  })

  test('a request whose body does not come ends its connection as one whose head does not', {
    timeout: 15_000,
  }, async (t) => {
    const server = createHttpServer()
    server.post('/', async () => 'served')
    const { connect } = await serving(t, server)
    const socket = connect().resume()
    socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n')
    await once(socket, 'close')
  })

  test('an answer while more than half of the connections are open ends its own, and one before does not', async (t) => {
    const server = createHttpServer({ mostConnections: 2 })
    server.get('/', async () => 'served')
    const { connect } = await serving(t, server)
    const answered = async (socket: net.Socket): Promise<string> => {
      socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
      return String((await once(socket, 'data'))[0])
    }
    const first = connect()
    assert.match(await answered(first), /connection: keep-alive/i)
    const second = connect()
    assert.match(await answered(second), /connection: close/i)
    await once(second, 'close')
    assert.match(await answered(first), /connection: keep-alive/i)
  })

  test('at localhost there is one server, whatever addresses that name has', async (t) => {
    const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }))
    const lookup = dns.lookup as unknown as (...call: unknown[]) => void
    t.mock.method(dns, 'lookup', (...call: unknown[]) => {
      const done = call.at(-1) as (error: null, found: object[]) => void
      if (call[0] === 'localhost' && call[1] instanceof Object && 'all' in call[1]) done(null, addresses)
      else lookup(...call)
    })
    const server = createHttpServer({ mostConnections: 1 })
    t.after(() => server.close())
    await listen(server, { host: 'localhost', port: 0 })
    assert.equal(server.addresses().length, 1)
  })

  test('requests behind each other on one connection are answered in turn, each once the former is', async (t) => {
    const server = createHttpServer()
    let inHand = 0
    server.post<{ Params: { name: string } }>('/:name', async ({ params, body }) => {
      assert.equal(++inHand, 1)
      await setImmediate()
      inHand--
      return `${params.name} ${JSON.stringify(body)};`
    })
    const { connect } = await serving(t, server)
    const socket = connect()
    const body = JSON.stringify('x'.repeat(2_000))
    const request = (name: string, last = '') =>
      `POST /${name} HTTP/1.1\r\nhost: x\r\n${last}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    socket.write(request('first') + request('second') + request('third', 'connection: close\r\n'))
    const answers = (await textOf(socket)).match(/\w+ "x+";/g) ?? []
    assert.deepEqual(
      answers,
      ['first', 'second', 'third'].map((name) => `${name} ${body};`),
    )
  })

  // Node answers some by itself, without a handler: each of these is answered in another way.
  const BURSTS = {
    'that are answered': 'host: x\r\n\r\n',
    'with an expectation': 'host: x\r\nexpect: nothing\r\n\r\n',
    'with heads of two slices': `host: x\r\nx: ${'x'.repeat(1_000)}\r\n\r\n`,
    'without a host': '\r\n',
  }
  for (const [what, head] of Object.entries(BURSTS))
    test(`of a thousand requests ${what} in one burst no two are parsed in one turn of the loop`, async (t) => {
      const server = createHttpServer()
      server.get('/', async () => 'served')
      const { connect } = await serving(t, server)
      const heads: number[] = []
      const parsed = (message: unknown) => {
        if ((message as { server: unknown }).server === server.server) heads.push(turns)
      }
      diagnostics.subscribe('http.server.request.start', parsed)
      t.after(() => diagnostics.unsubscribe('http.server.request.start', parsed))
      let turns = 0
      const socket = connect().resume()
      socket.write(`GET / HTTP/1.1\r\n${head}`.repeat(1_000))
      let closed = false
      socket.on('close', () => (closed = true))
      while (heads.length < 1_000 && !closed) {
        await setImmediate()
        turns++
      }
      assert.equal(new Set(heads).size, heads.length)
      assert.equal(heads.length, ['without a host', 'with an expectation'].includes(what) ? 1 : 1_000)
    })

  test('a body in the smallest chunks is read over many turns of the loop', async (t) => {
    const server = createHttpServer()
    server.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))
    server.post('/', async ({ body }) => String(String(body).length))
    const { connect } = await serving(t, server)
    const socket = connect()
    let turns = 0
    const count = setInterval(() => turns++, 0)
    t.after(() => clearInterval(count))
    const chunks = '1\r\nx\r\n'.repeat(10_000)
    socket.write(
      `POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: a/b\r\ntransfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`,
    )
    assert.match(await textOf(socket), /\r\n\r\n10000$/)
    assert.ok(turns > 1)
  })

  test('a body that others hide behind ends its connection', async (t) => {
    const server = createHttpServer()
    server.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))
    let begun = 0
    server.post('/', async () => {
      begun++
      await new Promise(() => undefined)
    })
    const { connect } = await serving(t, server)
    const socket = connect().resume()
    const hidden = 'POST / HTTP/1.1\r\nhost:x\r\ncontent-length:0\r\n\r\n'.repeat(1_000)
    socket.write(
      `POST / HTTP/1.1\r\nhost: x\r\ncontent-type: a/b\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
    )
    await once(socket, 'close')
    assert.equal(begun, 1)
  })

  const REFUSALS = {
    'a path that is not there': 'GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n',
    'a path that cannot be read': 'GET /%zz HTTP/1.1\r\nhost: x\r\n\r\n',
    'a name that is too long': `GET /${'x'.repeat(300)} HTTP/1.1\r\nhost: x\r\n\r\n`,
    'an expectation': 'GET / HTTP/1.1\r\nhost: x\r\nexpect: nothing\r\n\r\n',
    'no host': 'GET / HTTP/1.1\r\n\r\n',
  }
  for (const [what, request] of Object.entries(REFUSALS))
    test(`where connections are few, one ends with the refusal of ${what}`, async (t) => {
      const server = createHttpServer({ mostConnections: 2 })
      server.get<{ Params: { name: string } }>('/:name', async ({ params }, reply) =>
        params.name === 'nowhere' ? reply.callNotFound() : 'served',
      )
      const { connect } = await serving(t, server)
      const socket = connect()
      socket.write(request)
      assert.match(await textOf(socket), /^HTTP\/1.1 4\d\d /)
    })

  test('where connections are few, nobody keeps one by a refusal, or for long by a success', async (t) => {
    const server = createHttpServer({ mostConnections: 2 })
    server.get('/', async () => 'served')
    const { connect } = await serving(t, server)
    const refused = connect()
    refused.write('GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n')
    assert.match(await textOf(refused), /^HTTP\/1.1 404 .*\r\nconnection: close\r\n/is)
    const served = connect()
    served.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    assert.match(await textOf(served), /^HTTP\/1.1 200 .*\r\nkeep-alive: timeout=5\r\n/is)
  })
})

/** All that comes until the server closes the connection. */
const textOf = async (socket: net.Socket) => String(Buffer.concat(await socket.toArray()))

/** Listens; its connections end with the test. */
async function serving(t: TestContext, server: HttpServer) {
  const url = await listen(server, { host: '127.0.0.1', port: 0 })
  t.after(() => server.close())
  const connect = () => {
    const socket = net.connect(Number(new URL(url).port), '127.0.0.1')
    t.after(() => socket.destroy())
    return socket.on('error', () => undefined)
  }
  return { server, connect }
}
