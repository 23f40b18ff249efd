import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { readAllBatches } from './kafkajs-batches.ts'
import { LIBRDKAFKA } from './record-batch.fixture.ts'
import type { BatchMessage } from './record-batch.ts'

type Fetched = { buffer: Buffer; offset: number }
type Decode = (fetched: Fetched) => Promise<{ records: BatchMessage[] }>

readAllBatches()
const decode = createRequire(import.meta.url)('kafkajs/src/protocol/recordBatch/v0/decoder.js') as Decode
const batch = Buffer.from(LIBRDKAFKA.zstd, 'base64')

/** How many records are read of each of two partitions, of which a fetch brought three batches of 20. */
async function readFetch(): Promise<number[]> {
  const fetch = Buffer.concat(Array<Buffer>(6).fill(batch), 6 * batch.length)
  const parts = [fetch.subarray(0, 3 * batch.length), fetch.subarray(3 * batch.length)]
  const read: number[] = []
  for (const buffer of parts) read.push(await readAll({ buffer, offset: 0 }))
  return read
}

async function readAll(fetched: Fetched): Promise<number> {
  let read = 0
  try {
    while (fetched.offset < fetched.buffer.length) read += (await decode(fetched)).records.length
  } catch (error) {
    assert.equal((error as Error).name, 'KafkaJSPartialMessageError')
  }
  return read
}

for (const [ms, read] of [
  [1, [60, 60]],
  [130, [40, 20]],
  [9_000, [20, 20]],
] as const)
  test(`if a batch takes ${ms} ms to unpack, a fetch leaves the rest of its partitions to the next one, but something of each is read`, async (t) => {
    let now = 0
    t.mock.method(performance, 'now', () => {
      now += ms
      return now
    })
    assert.deepEqual(await readFetch(), read)
  })

/** All bits that the checksum covers, and its own. */
const FIRST_CHECKED = 17

test('of a batch in which any one bit turned nothing is read, whatever compresses it', async () => {
  for (const base64 of Object.values(LIBRDKAFKA)) {
    const intact = Buffer.from(base64, 'base64')
    for (let bit = FIRST_CHECKED * 8; bit < intact.length * 8; bit++) {
      const buffer = Buffer.from(intact)
      const at = Math.floor(bit / 8)
      buffer.writeUInt8(buffer.readUInt8(at) ^ (1 << (bit % 8)), at)
      const { records } = await decode({ buffer, offset: 0 })
      assert.deepEqual(
        records.map(({ isDamaged, isControlRecord, value }) => [isDamaged, isControlRecord, value]),
        [[true, false, null]],
      )
    }
  }
})

test('a length or a last offset that turned leads neither out of the batch nor back', async () => {
  for (const [at, value] of [
    [8, -1],
    [8, 0],
    [8, -2_000_000_000],
    [23, -5],
  ] as const) {
    const buffer = Buffer.from(batch)
    buffer.writeInt32BE(value, at)
    const { records } = await decode({ buffer, offset: 0 })
    assert.deepEqual(
      records.map(({ offset, isDamaged }) => [offset, isDamaged]),
      [[at === 23 ? '0' : '19', true]],
    )
  }
})

test('a damaged batch comes alone: what stands before it comes first, and what follows waits for another fetch', async () => {
  const damaged = Buffer.from(batch)
  damaged.writeUInt8(damaged.readUInt8(100) ^ 1, 100)
  assert.equal(await readAll({ buffer: Buffer.concat([batch, damaged, batch]), offset: 0 }), 20)
  assert.equal(await readAll({ buffer: Buffer.concat([damaged, batch]), offset: 0 }), 1)
})
