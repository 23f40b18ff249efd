import { createRequire } from 'node:module'
import zlib from 'node:zlib'
import { ExpectedFailure } from '../../expected-failure.ts'
import { isIntact } from './record-batches/checksum.ts'
import { damagedBatch } from './record-batches/damaged-batch.ts'
import { type BatchMessage, LIMITS, readRecordBatch } from './record-batches/record-batch.ts'

/** KafkaJS's reader of one partition's part of a fetch: some batches, the last of which may be cut off. */
type FetchedBatches = { buffer: Buffer; offset: number }

const require = createRequire(import.meta.url)
const DECODER = 'kafkajs/src/protocol/recordBatch/v0/decoder.js'
const DECODER_OF_OLD_FORMATS = 'kafkajs/src/protocol/messageSet/decoder.js'
/** Offset and length come before what the length counts. */
const BEFORE = 12

/** How many bytes of a partition's part have been unpacked. Infinity: nothing more of it may be. */
const unpacked = new WeakMap<FetchedBatches, number>()
/** The offset at which the next batch of a partition's part begins if nothing between is gone. */
const following = new WeakMap<FetchedBatches, bigint>()
/** How many ms it took to unpack what a fetch brought, whose parts share its memory. */
const spentMs = new WeakMap<ArrayBufferLike, number>()
/** Small batches may take long. Until all parts of a fetch are unpacked, none is processed, and no heartbeat is sent. */
const LONGEST_MS = 250

/**
 * KafkaJS 2.2.4 reads only gzip, without a size limit, and one batch that it cannot decode stops its consumer for
 * ever. So payoutd replaces its decoder of record batches. By the format of the first batch, which no checksum covers, KafkaJS
 * chooses another decoder for all of them: payoutd replaces that one, too. KafkaJS loads them with the first response.
 */
export function readAllBatches(): void {
  if (!('zstdDecompress' in zlib))
    throw new ExpectedFailure('payoutd needs Node 22.15 or later, which reads zstd')
  replace(DECODER, nextBatch)
  replace(DECODER_OF_OLD_FORMATS, async (fetched) => (await nextBatch(fetched)).records)
}

function replace(decoder: string, by: (fetched: FetchedBatches) => Promise<unknown>): void {
  require(decoder)
  const cached = require.cache[require.resolve(decoder)]
  if (cached) cached.exports = by
}

async function nextBatch(fetched: FetchedBatches): Promise<{ records: BatchMessage[] }> {
  const { buffer, offset } = fetched
  const before = unpacked.get(fetched)
  const spent = spentMs.get(buffer.buffer) ?? 0
  // The next fetch returns what is left out here: of each partition one batch is read, and more only within both limits.
  const isEnough = before !== undefined && (before > LIMITS.bytes || spent > LONGEST_MS)
  if (isEnough) throw partial()
  const began = performance.now()
  const batch = wholeBatch(buffer, offset)
  const first = buffer.readBigInt64BE(offset)
  // What is in doubt (doubtful-batches.ts) always comes first in a fetch. The first batch of a fetch is never cut off.
  if (before !== undefined && (batch === null || first !== following.get(fetched))) throw partial()
  const last = first + BigInt(Math.max(0, buffer.readInt32BE(offset + 23)))
  if (batch === null) {
    unpacked.set(fetched, Number.POSITIVE_INFINITY)
    const behind = wholeBatch(buffer, endOf(buffer, offset))
    return { records: [damagedBatch(first, { named: last, next: behind?.readBigInt64BE(0) ?? null })] }
  }
  following.set(fetched, last + 1n)
  fetched.offset = offset + batch.length
  const records = await readRecordBatch(batch)
  spentMs.set(buffer.buffer, spent + performance.now() - began)
  unpacked.set(fetched, (before ?? 0) + sizeOf(records))
  return { records }
}

/** Where a batch ends by its length, which no checksum covers. */
const endOf = (buffer: Buffer, offset: number): number => offset + BEFORE + buffer.readInt32BE(offset + 8)

/** Null if it is cut off or damaged. */
function wholeBatch(buffer: Buffer, offset: number): Buffer | null {
  if (offset < 0 || offset + BEFORE > buffer.length) return null
  const end = endOf(buffer, offset)
  const batch = buffer.subarray(offset, end)
  return end > offset && end <= buffer.length && isIntact(batch) ? batch : null
}

/** Roughly what a record and a header take beside their bytes: a thousand empty ones are a few bytes in Kafka. */
const RECORD_BYTES = 400
const HEADER_BYTES = 200

const sizeOf = (records: readonly BatchMessage[]): number =>
  records.reduce((sum, each) => sum + bytesOf(each), 0)

function bytesOf({ key, value, headers = {} }: BatchMessage): number {
  let bytes = RECORD_BYTES + (key?.length ?? 0) + (value?.length ?? 0)
  for (const name in headers)
    for (const each of [headers[name]].flat()) bytes += HEADER_BYTES + name.length + (each?.length ?? 0)
  return bytes
}

/** The error by which KafkaJS recognizes a batch that is cut off. */
function partial(): Error {
  const error = new Error('the rest is left for the next fetch')
  error.name = 'KafkaJSPartialMessageError'
  return error
}
