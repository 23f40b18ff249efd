import assert from 'node:assert/strict'
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { silentLogger } from '../log.ts'
import { kafkaFor } from './connection.ts'

const [broker = ''] = (process.env.TEST_KAFKA_BROKERS ?? '').split(',')

const AWAY: Readonly<Record<string, (socket: Socket) => void>> = {
  'closes every connection': (socket) => socket.destroy(),
  'answers nothing': (socket) => socket.resume(),
}

for (const [what, meet] of Object.entries(AWAY)) {
  test(`if the first broker ${what}, the client asks the next one`, async (t) => {
    const first = await serverThat(meet, t)
    const connection = { brokers: [first, broker], clientId: 'test', requestTimeout: 1_000 }
    const admin = kafkaFor(connection, silentLogger, t.signal).admin()
    t.after(() => admin.disconnect())
    await admin.connect()
    const { brokers } = await admin.describeCluster()
    assert.deepEqual(
      brokers.map(({ host, port }) => `${host}:${port}`),
      [broker],
    )
  })
}

async function serverThat(meet: (socket: Socket) => void, t: TestContext): Promise<string> {
  const open = new Set<Socket>()
  const server = net.createServer((socket) => {
    open.add(socket)
    socket.on('error', () => undefined)
    meet(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}
