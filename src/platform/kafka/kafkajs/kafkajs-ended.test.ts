import assert from 'node:assert/strict'
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { suite, type TestContext, test } from 'node:test'
import { silentLogger } from '../../log.ts'
import { eventually } from '../../running/eventually.fixture.ts'
import { silentWire } from '../../wire.fixture.ts'
import { connectAdmin } from '../admin.ts'
import { type KafkaConnection, kafkaFor } from '../connection.ts'
import { consumeBatches } from '../consumer.ts'
import { kafka, newTopic, unique } from '../kafka.fixture.ts'
import { startAt } from '../offsets.ts'
import { partitionLogs } from '../partition-logs.ts'
import { kafkaPing } from '../ping.ts'
import { createPublisher } from '../producer.ts'
import { readTopics } from '../reader.ts'

/** `use` rejects if Kafka does not answer. */
type UsedClient = { use(): Promise<unknown>; stop(): Promise<unknown> }

const CLIENTS: Readonly<Record<string, (connection: KafkaConnection, topic: string) => UsedClient>> = {
  ping: (connection) => {
    const { ping, close } = kafkaPing(connection, silentLogger)
    return { use: ping, stop: close }
  },
  admin: (connection, topic) => {
    const admin = connectAdmin(connection, silentLogger)
    return {
      use: async () => (await admin).logs(topic),
      stop: () =>
        admin.then(
          (connected) => connected.close(),
          () => undefined,
        ),
    }
  },
  'partition log': (connection, topic) => {
    const logs = partitionLogs(connection, silentLogger, new AbortController().signal)
    return { use: () => logs.logOf({ topic, partition: 0 }), stop: () => logs.close() }
  },
  producer: (connection, topic) => {
    const { publish, close } = createPublisher('test', connection, silentLogger)
    return { use: () => publish([{ topic, key: null, value: Buffer.from('a') }]), stop: close }
  },
  consumer: (connection, topic) => {
    const { promise: read, resolve } = Promise.withResolvers<void>()
    const { stop } = consumeBatches({
      ...{ connection, groupId: unique('group'), topics: [topic], partitionsAtOnce: 1, log: silentLogger },
      begin: async (_, log) => {
        const { id, ...held } = await log()
        resolve()
        return { offset: startAt(null, { id, ...held }).offset, logId: id }
      },
      handler: async () => undefined,
    })
    return { use: () => read, stop }
  },
  reader: (connection, topic) => {
    const { promise: read, resolve } = Promise.withResolvers<void>()
    const { stop } = readTopics({ connection, topics: [topic], onRecord: () => resolve(), log: silentLogger })
    return { use: () => read, stop }
  },
}

suite('sockets of a Kafka client', { concurrency: true }, () => {
  for (const [kind, make] of Object.entries(CLIENTS)) {
    test(`a stopped ${kind} leaves no socket at a broker that never answered`, async (t) => {
      const { port, asked } = await silentBroker(t)
      const { connection, opened } = connectionTo(t, port)
      const client = make(connection, 'any')
      client.use().catch(() => undefined)
      await asked
      await client.stop().catch(() => undefined)
      await eventually('all to be closed', () => opened.every(({ destroyed }) => destroyed))
    })

    test(`a stopped ${kind} leaves no socket at a broker that fell silent`, async (t) => {
      const topic = await newTopic()
      const filler = createPublisher('test', kafka(), silentLogger)
      await filler.publish([{ topic, key: null, value: Buffer.from('a') }])
      await filler.close()
      const [host = '', brokerPort] = (kafka().brokers[0] as string).split(':')
      const wire = await silentWire({ host, port: Number(brokerPort) })
      t.after(() => wire.close())
      const { connection, opened } = connectionTo(t, wire.port)
      const client = make(connection, topic)
      await client.use()
      wire.silence()
      await client.stop().catch(() => undefined)
      await eventually('all to be closed', () => opened.every(({ destroyed }) => destroyed))
    })
  }

  for (const kind of ['ping', 'partition log']) {
    test(`a ${kind} that got no answer from a silent broker holds no socket until it asks again`, async (t) => {
      const { port } = await silentBroker(t)
      const { connection, opened } = connectionTo(t, port)
      const client = CLIENTS[kind]?.(connection, 'any') as UsedClient
      t.after(() => client.stop())
      await assert.rejects(client.use())
      assert.ok(opened.length > 0)
      await eventually('all to be closed', () => opened.every(({ destroyed }) => destroyed))
    })
  }

  test('a client that keeps asking a silent broker keeps no abandoned socket', async (t) => {
    const { port } = await silentBroker(t)
    const { connection, opened } = connectionTo(t, port)
    const connecting = kafkaFor(connection, silentLogger, t.signal).admin().connect()
    connecting.catch(() => undefined)
    await eventually('the third connection', () => opened.length >= 3)
    await eventually('the first two to be closed', () =>
      opened.slice(0, 2).every(({ destroyed }) => destroyed),
    )
  })
})

/** A broker that accepts connections, answers nothing and closes none. `asked`: it got a first request. */
async function silentBroker(t: TestContext): Promise<{ port: number; asked: Promise<void> }> {
  const { promise: asked, resolve } = Promise.withResolvers<void>()
  const taken: Socket[] = []
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    taken.push(socket.on('error', () => undefined).on('data', () => resolve()))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    for (const socket of taken) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, asked }
}

/** Every connection leads to that port, whatever broker it names. */
function connectionTo(t: TestContext, port: number): { connection: KafkaConnection; opened: Socket[] } {
  const opened: Socket[] = []
  t.after(() => {
    for (const socket of opened) socket.destroy()
  })
  const connection: KafkaConnection = {
    ...kafka(),
    connectionTimeout: 300,
    requestTimeout: 300,
    socketFactory: ({ onConnect }) => {
      const socket = net.connect({ host: '127.0.0.1', port }, onConnect)
      opened.push(socket)
      return socket
    },
  }
  return { connection, opened }
}
