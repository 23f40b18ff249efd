import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { Transform } from 'node:stream'
import type { TestContext } from 'node:test'
import type { KafkaConnection } from './connection.ts'
import { kafka } from './kafka.fixture.ts'

/**
 * The lowest bit of the last byte of `content` turns, `times` times: on the way to Kafka or from it. Infinity: as if it had turned
 * where the broker keeps it.
 */
export type TurnedBit = { content: string | Buffer; way: 'to Kafka' | 'from Kafka'; times: number }

/** Kafka over a wire on which a bit turns, and how many times it did. Content must come in one part, so let it be short. */
export async function turningWire(t: TestContext, { content, way, times }: TurnedBit) {
  const searched = Buffer.from(content)
  let turned = 0
  const turning = () =>
    new Transform({
      transform(part: Buffer, _encoding, done) {
        const found = part.indexOf(searched)
        if (found === -1 || turned >= times) return done(null, part)
        turned++
        const copy = Buffer.from(part)
        const at = found + searched.length - 1
        copy.writeUInt8(copy.readUInt8(at) ^ 1, at)
        return done(null, copy)
      },
    })
  const [host = '', port] = (kafka().brokers[0] ?? '').split(':')
  const server = net.createServer((near) => {
    const far = net.connect({ host, port: Number(port) })
    near.on('error', () => undefined).on('close', () => far.destroy())
    far.on('error', () => undefined).on('close', () => near.destroy())
    if (way === 'to Kafka') near.pipe(turning()).pipe(far).pipe(near)
    else near.pipe(far).pipe(turning()).pipe(near)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close())
  const wire = (server.address() as AddressInfo).port
  const connection: KafkaConnection = {
    ...kafka(),
    socketFactory: ({ onConnect }) => net.connect({ host: '127.0.0.1', port: wire }, onConnect),
  }
  return { connection, turned: () => turned }
}
