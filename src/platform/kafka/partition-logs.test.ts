import assert from 'node:assert/strict'
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { test } from 'node:test'
import { silentLogger } from '../log.ts'
import { kafka, newTopic } from './kafka.fixture.ts'
import { partitionLogs } from './partition-logs.ts'

test('if a connection gets no first answer in time, the next request goes over a new one and is answered', async (t) => {
  const sockets: Socket[] = []
  const mute = net.createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1')
  await once(mute, 'listening')
  let isMute = true
  const connection = {
    ...kafka(),
    connectionTimeout: 500,
    requestTimeout: 500,
    socketFactory: ({ host, port, onConnect }: { host: string; port: number; onConnect: () => void }) =>
      isMute
        ? net.connect({ host: '127.0.0.1', port: (mute.address() as AddressInfo).port }, onConnect)
        : net.connect({ host, port }, onConnect),
  }
  const topic = await newTopic()
  const logs = partitionLogs(connection, silentLogger, t.signal)
  t.after(async () => {
    for (const socket of sockets) socket.destroy()
    mute.close()
    await logs.close()
  })

  const at = { topic, partition: 0 }
  await assert.rejects(logs.logOf(at))
  isMute = false
  assert.deepEqual({ ...(await logs.logOf(at)), id: '' }, { id: '', low: 0n, high: 0n })
})
