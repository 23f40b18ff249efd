import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { readAllBatches } from './kafkajs-batches.ts'
import { LIBRDKAFKA } from './record-batch.fixture.ts'

type Fetched = { buffer: Buffer; offset: number }
type Decode = (fetched: Fetched) => Promise<{ records: unknown[] }>

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
