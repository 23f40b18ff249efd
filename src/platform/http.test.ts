import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import { createHttpServer, listen } from './http.ts'

test('half a request keeps a server from closing for some seconds only', { timeout: 20_000 }, async (t) => {
  const server = createHttpServer()
  const url = await listen(server, { host: '127.0.0.1', port: 0 })
  const socket = net.connect(Number(new URL(url).port), '127.0.0.1')
  t.after(() => socket.destroy())
  const arrived = once(server.server, 'connection')
  socket.on('error', () => undefined).write('POST /callbacks HTTP/1.1\r\nhost: x\r\n')
  await arrived
  await server.close()
})
