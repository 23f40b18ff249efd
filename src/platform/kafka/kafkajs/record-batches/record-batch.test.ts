import assert from 'node:assert/strict'
import { test } from 'node:test'
import zlib from 'node:zlib'
import fc from 'fast-check'
import { COMPRESSIONS, type Compression, decompress } from './decompress.ts'
import { LIBRDKAFKA } from './record-batch.fixture.ts'
import { LIMITS, readRecordBatch } from './record-batch.ts'

const fixtures = Object.entries(LIBRDKAFKA).map(
  ([name, base64]) => [name as Compression, Buffer.from(base64, 'base64')] as const,
)

test('a zstd batch of several frames is read', async () => {
  const batch = Buffer.from(LIBRDKAFKA.zstd, 'base64')
  const header = batch.subarray(0, 61)
  const content = zlib.zstdDecompressSync(batch.subarray(61))
  const halves = [content.subarray(0, content.length / 2), content.subarray(content.length / 2)]
  const inFrames = Buffer.concat([header, ...halves.map((half) => zlib.zstdCompressSync(half))])
  assert.deepEqual(await readRecordBatch(inFrames), await readRecordBatch(batch))
})

test('a zstd batch has no more than 16 frames, which each cost a decompressor', async () => {
  /** Empty, with a window of 128 MB. */
  const empty = Buffer.from('28b52ffd0088010000', 'hex')
  const content = zlib.zstdCompressSync(Buffer.from('a'))
  const frames = (empties: number) => Buffer.concat([...Array<Buffer>(empties).fill(empty), content])
  assert.equal(String(await decompress(frames(15), 'zstd', 10)), 'a')
  await assert.rejects(decompress(frames(16), 'zstd', 10), /more than 16 frames/)
})

test('batches that librdkafka compressed with gzip, snappy, lz4 and zstd are read, message by message', async () => {
  for (const [name, batch] of fixtures) {
    assert.equal(COMPRESSIONS[batch.readInt16BE(21) & 7], name)
    const messages = await readRecordBatch(batch)
    assert.equal(messages.length, 20, name)
    messages.forEach((message, i) => {
      assert.equal(message.unreadable, undefined)
      assert.deepEqual(
        [message.offset, message.timestamp, String(message.key), String(message.value)],
        [
          `${i}`,
          `${1_793_923_200_000 + i}`,
          `acme:p${i}`,
          `payout ${i} of acme, ₹${100 * i}, to be paid by Friday`,
        ],
      )
      assert.equal(String(message.headers?.traceparent), `00-${i}`)
      assert.deepEqual(((message.headers?.twice ?? []) as Buffer[]).map(String), ['a', 'b'])
    })
  }
})

/** Kafka's varint. */
function varint(value: number): Buffer {
  const bytes: number[] = []
  for (let left = BigInt(value) * 2n + (value < 0 ? -2n * BigInt(value) * 2n - 1n : 0n); ; left >>= 7n) {
    if (left < 0x80n) return Buffer.of(...bytes, Number(left))
    bytes.push(Number(left & 0x7fn) | 0x80)
  }
}

function record(offset: number, value: Buffer, headers: number): Buffer {
  const head = [Buffer.of(0), varint(0), varint(offset), varint(-1), varint(value.length), value]
  const each = Array.from({ length: headers }, (_, i) => [varint(5), Buffer.from(`${10_000 + i}`), varint(0)])
  const body = Buffer.concat([...head, varint(headers), ...each.flat()])
  return Buffer.concat([varint(body.length), body])
}

/** A batch whose first message has the offset 100, as a broker keeps it. */
function batchOf(compression: Compression, count: number, records: Buffer): Buffer {
  const header = Buffer.alloc(61)
  header.writeBigInt64BE(100n, 0)
  header.writeInt32BE(49 + records.length, 8)
  header.writeInt8(2, 16)
  header.writeInt16BE(COMPRESSIONS.indexOf(compression), 21)
  header.writeInt32BE(count - 1, 23)
  header.writeInt32BE(count, 57)
  return Buffer.concat([header, records])
}

const only = async (batch: Buffer) => {
  const [message, ...others] = await readRecordBatch(batch)
  assert.equal(others.length, 0)
  return message
}

test('a few hundred bytes that unpack to gigabytes are one unreadable message at the last offset', async () => {
  const zeros = record(0, Buffer.alloc(LIMITS.bytes), 0)
  for (const [compression, packed] of [
    ['gzip', zlib.gzipSync(zeros)],
    ['zstd', zlib.zstdCompressSync(zeros)],
  ] as const) {
    const message = await only(batchOf(compression, 3, packed))
    assert.deepEqual([message?.offset, message?.value], ['102', null])
    assert.equal(message?.unreadable?.reason, 'unreadable-batch')
    assert.match(
      message?.unreadable?.detail ?? '',
      new RegExp(`a batch \\(${compression}\\) of the offsets 100 to 102 cannot`),
    )
  }
  // LZ4: a match of the byte before, of any length: 255 more for each byte.
  const lz4 = Buffer.concat([
    Buffer.of(0x1f, 0, 1, 0),
    Buffer.alloc(LIMITS.bytes / 255 + 1, 255),
    Buffer.of(0),
  ])
  const size = Buffer.alloc(4)
  size.writeUInt32LE(lz4.length)
  const frame = Buffer.concat([Buffer.from('04224d18607000', 'hex'), size, lz4, Buffer.alloc(4)])
  assert.match((await only(batchOf('lz4', 1, frame)))?.unreadable?.detail ?? '', /LZ4: more than/)
  const snappy = Buffer.of(0xff, 0xff, 0xff, 0xff, 0x0f, 0)
  assert.match((await only(batchOf('snappy', 1, snappy)))?.unreadable?.detail ?? '', /Snappy: more than/)
})

test('more messages than KafkaJS can take at once are unreadable, however small they are', async () => {
  const count = LIMITS.records + 1
  const records = Buffer.concat(Array.from({ length: count }, (_, i) => record(i, Buffer.alloc(0), 0)))
  assert.match((await only(batchOf('none', count, records)))?.unreadable?.detail ?? '', /50001 records/)
})

/** Uncompressed records that name their own offsets, in a batch from 100 to `last` inclusive. */
const batchFrom100 = (offsets: readonly number[], last: number): Buffer => {
  const all = offsets.map((offset) => record(offset, Buffer.from(`${offset}`), 0))
  const batch = batchOf('none', offsets.length, Buffer.concat(all))
  batch.writeInt32BE(last - 100, 23)
  return batch
}

test('whatever offsets its records have, a batch ends where its header says, and no record lies outside it', async () => {
  const far = fc.integer({ min: -(2 ** 31), max: 2 ** 31 })
  const near = fc.integer({ min: -3, max: 8 })
  const some = fc.array(fc.oneof(near, far), { maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        some,
        fc.uniqueArray(near).map((all) => all.sort((a, b) => a - b)),
      ),
      async (offsets) => {
        const messages = await readRecordBatch(batchFrom100(offsets, 105))
        const read = messages.map(({ offset }) => Number(offset))
        assert.equal(read.at(-1), 105)
        assert.ok(read.every((offset, i) => offset >= 100 && offset > (read[i - 1] ?? 0)))
        const isHonest = offsets.every((offset, i) => offset > (offsets[i - 1] ?? -1) && offset <= 5)
        assert.equal(messages[0]?.unreadable?.reason, isHonest ? undefined : 'unreadable-batch')
        const handed = messages.filter(({ isControlRecord }) => !isControlRecord)
        assert.equal(handed.length, isHonest ? offsets.length : 1)
      },
    ),
    { numRuns: 2_000 },
  )
})

test('a message with thousands of headers is unreadable, found quickly, and its neighbours are read', async () => {
  const records = [
    record(0, Buffer.from('a'), 2),
    record(1, Buffer.from('b'), 50_000),
    record(2, Buffer.from('c'), 0),
  ]
  const began = performance.now()
  const read = await readRecordBatch(batchOf('none', 3, Buffer.concat(records)))
  assert.ok(performance.now() - began < 500)
  assert.deepEqual(
    read.map(({ value, unreadable }) => [String(value), unreadable?.reason]),
    [
      ['a', undefined],
      ['b', 'too-many-headers'],
      ['c', undefined],
    ],
  )
})

test('a batch with too many headers in all is unreadable as a whole, and found quickly', async () => {
  const records = Array.from({ length: 10_000 }, (_, i) => record(i, Buffer.alloc(0), 30))
  const batch = batchOf('gzip', 10_000, zlib.gzipSync(Buffer.concat(records)))
  const began = performance.now()
  const read = await only(batch)
  assert.ok(performance.now() - began < 2_000)
  assert.match(read?.unreadable?.detail ?? '', /more than 250000 headers/)
})

/** As Java's client frames it. */
function xerial(...blocks: Buffer[]): Buffer {
  const framed = blocks.flatMap((block) => {
    const length = Buffer.alloc(4)
    length.writeInt32BE(block.length)
    return [length, block]
  })
  return Buffer.concat([Buffer.from('\x82SNAPPY\0\0\0\0\x01\0\0\0\x01', 'latin1'), ...framed])
}

test('both framings of snappy are read', async () => {
  const hello = Buffer.of(5, 16, ...Buffer.from('hello'))
  assert.equal(String(await decompress(hello, 'snappy', 100)), 'hello')
  assert.equal(String(await decompress(xerial(hello, hello), 'snappy', 10)), 'hellohello')
  await assert.rejects(decompress(xerial(hello, hello), 'snappy', 9), /more than 4 bytes/)
})

test('damaged batches of every kind are unreadable, and never throw or hang', async () => {
  const damaged = fc
    .tuple(
      fc.constantFrom(...fixtures.map(([, batch]) => batch)),
      fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 4 }),
      fc.nat(),
    )
    .map(([batch, changes, cut]) => {
      const copy = Buffer.from(batch.subarray(0, 62 + (cut % (batch.length - 61))))
      for (const [at, byte] of changes) copy[61 + (at % (copy.length - 61))] = byte
      return copy
    })
  const began = performance.now()
  await fc.assert(
    fc.asyncProperty(damaged, async (batch) => {
      assert.ok((await readRecordBatch(batch)).length > 0)
    }),
    { numRuns: 2_000 },
  )
  assert.ok(performance.now() - began < 20_000)
})

test('snappy in very many blocks is read as fast as in few', async () => {
  const block = Buffer.of(1, 0, 0x61)
  const began = performance.now()
  assert.equal((await decompress(xerial(...Array(50_000).fill(block)), 'snappy', 50_000)).length, 50_000)
  assert.ok(performance.now() - began < 2_000)
})
