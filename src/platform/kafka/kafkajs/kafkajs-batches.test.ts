import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { readAllBatches } from './kafkajs-batches.ts'
import { LIBRDKAFKA } from './record-batches/record-batch.fixture.ts'
import type { BatchMessage } from './record-batches/record-batch.ts'

type Fetched = { buffer: Buffer; offset: number }
type Decode = (fetched: Fetched) => Promise<{ records: BatchMessage[] }>

readAllBatches()
const decode = createRequire(import.meta.url)('kafkajs/src/protocol/recordBatch/v0/decoder.js') as Decode
const batch = Buffer.from(LIBRDKAFKA.zstd, 'base64')

/** The batch of 20 as if it began at that offset. */
function batchAt(first: bigint): Buffer {
  const moved = Buffer.from(batch)
  moved.writeBigInt64BE(first, 0)
  return moved
}

/** How many records are read of each of two partitions, of which a fetch brought three batches of 20. */
async function readFetch(): Promise<number[]> {
  const three = [0n, 20n, 40n].map(batchAt)
  const fetch = Buffer.concat([...three, ...three])
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

/** The format, the checksum, and all that it covers. */
const FIRST_CHECKED = 16

test('of a batch in which any one bit turned nothing is read, whatever compresses it', async () => {
  for (const base64 of Object.values(LIBRDKAFKA)) {
    const intact = Buffer.from(base64, 'base64')
    for (let bit = FIRST_CHECKED * 8; bit < intact.length * 8; bit++) {
      const buffer = Buffer.from(intact)
      const at = Math.floor(bit / 8)
      buffer.writeUInt8(buffer.readUInt8(at) ^ (1 << (bit % 8)), at)
      const { records } = await decode({ buffer, offset: 0 })
      assert.deepEqual(
        records.map(({ damaged, isControlRecord, value }) => [damaged !== undefined, isControlRecord, value]),
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
    [8, 2_000_000_000],
    [8, -12 - batch.length],
    [23, -5],
  ] as const) {
    const buffer = Buffer.from(batch)
    buffer.writeInt32BE(value, at)
    const { records } = await decode({ buffer, offset: 0 })
    assert.deepEqual(
      records.map(({ damaged }) => damaged),
      [{ named: at === 23 ? 0n : 19n, next: null }],
    )
  }
})

test('a length that turned negative is not counted from the end of the fetch', async () => {
  const buffer = Buffer.concat([batch, batchAt(20n)])
  buffer.writeInt32BE(-12 - batch.length, 8)
  const { records } = await decode({ buffer, offset: 0 })
  assert.deepEqual(
    records.map(({ damaged }) => damaged),
    [{ named: 19n, next: null }],
  )
})

test('a damaged batch comes alone: what stands before it comes first, and what follows waits for another fetch', async () => {
  const damaged = Buffer.from(batch)
  damaged.writeUInt8(damaged.readUInt8(100) ^ 1, 100)
  assert.equal(await readAll({ buffer: Buffer.concat([batch, damaged, batch]), offset: 0 }), 20)
  assert.equal(await readAll({ buffer: Buffer.concat([damaged, batch]), offset: 0 }), 1)
})

test('a damaged batch ends where the intact one behind it begins, if there is one, whatever its header says', async () => {
  const damaged = Buffer.from(batch)
  damaged.writeInt32BE(5_000, 23)
  const endOf = async (...behind: Buffer[]) =>
    (await decode({ buffer: Buffer.concat([damaged, ...behind]), offset: 0 })).records[0]?.damaged
  assert.deepEqual(await endOf(batchAt(20n)), { named: 5_000n, next: 20n })
  for (const behind of [[], [damaged], [batchAt(20n).subarray(0, 100)], [batch.subarray(0, 5)]])
    assert.deepEqual(await endOf(...behind), { named: 5_000n, next: null })
})

test('of a fetch only what follows without a gap is read, as no checksum covers where a batch begins', async () => {
  for (const [second, read] of [
    [20n, 60],
    [16n, 20],
    [52n, 20],
  ] as const)
    assert.equal(
      await readAll({ buffer: Buffer.concat([batchAt(0n), batchAt(second), batchAt(40n)]), offset: 0 }),
      read,
    )
})

test('a bit of the format makes a batch damaged: KafkaJS reads it by the rules of no older one', async () => {
  const decodeOld = createRequire(import.meta.url)('kafkajs/src/protocol/messageSet/decoder.js') as (
    fetched: Fetched,
  ) => Promise<BatchMessage[]>
  const buffer = Buffer.from(batch)
  buffer.writeUInt8(0, 16)
  const messages = await decodeOld({ buffer, offset: 0 })
  assert.deepEqual(
    messages.map(({ damaged }) => damaged),
    [{ named: 19n, next: null }],
  )
})
