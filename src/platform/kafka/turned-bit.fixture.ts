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

/**
 * The bit (0 is the lowest) of byte `at` of the batch that begins at offset `batch` turns on the way from Kafka, `times` times. Only
 * uncompressed batches.
 */
export type TurnedHeader = { batch: bigint; at: number; bit: number; times: number }

/** Kafka over a wire on which a bit turns, and how many times it did. Content must come in one part, so let it be short. */
export function turningWire(t: TestContext, { content, way, times }: TurnedBit) {
  const searched = Buffer.from(content)
  const find = (part: Buffer) => {
    const found = part.indexOf(searched)
    return found === -1 ? null : { at: found + searched.length - 1, bit: 0 }
  }
  return wireThatTurns(t, way, times, find)
}

/** The same with a bit of the header of a batch. */
export function turningHeader(t: TestContext, { batch, at, bit, times }: TurnedHeader) {
  const isBegin = (part: Buffer, place: number) =>
    part.readBigInt64BE(place) === batch && part[place + 16] === 2 && part.readInt16BE(place + 21) === 0
  const find = (part: Buffer) => {
    for (let place = 0; place + 61 <= part.length; place++)
      if (isBegin(part, place)) return { at: place + at, bit }
    return null
  }
  return wireThatTurns(t, 'from Kafka', times, find)
}

async function wireThatTurns(
  t: TestContext,
  way: TurnedBit['way'],
  times: number,
  find: (part: Buffer) => { at: number; bit: number } | null,
) {
  let turned = 0
  const turning = () =>
    new Transform({
      transform(part: Buffer, _encoding, done) {
        const found = turned < times ? find(part) : null
        if (found === null) return done(null, part)
        turned++
        const copy = Buffer.from(part)
        copy.writeUInt8(copy.readUInt8(found.at) ^ (1 << found.bit), found.at)
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
