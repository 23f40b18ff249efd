import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { suite, type TestContext, test } from 'node:test'
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
    const heard = await socket.toArray()
    assert.match(String(Buffer.concat(heard)), /^HTTP\/1.1 200 .*done$/s)
  })

  test('connections beyond the most are closed, and those before them are served', async (t) => {
    const server = createHttpServer({ mostConnections: 1 })
    server.get('/', async () => 'served')
    const { connect } = await serving(t, server)
    const first = connect()
    await once(first, 'connect')
    await once(connect(), 'close')
    first.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    const [heard] = await once(first, 'data')
    assert.match(String(heard), /^HTTP\/1.1 200 /)
  })
})

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
