import { createRequire } from 'node:module'
import zlib from 'node:zlib'
import { ExpectedFailure } from '../../expected-failure.ts'
import { isIntact } from './checksum.ts'
import { type BatchMessage, damagedBatch, LIMITS, readRecordBatch } from './record-batch.ts'

/** KafkaJS's reader of one partition's part of a fetch: some batches, the last of which may be cut off. */
type FetchedBatches = { buffer: Buffer; offset: number }

const require = createRequire(import.meta.url)
const DECODER = 'kafkajs/src/protocol/recordBatch/v0/decoder.js'
/** Offset and length come before what the length counts. */
const BEFORE = 12

/** How many bytes of a partition's part have been unpacked. Infinity: nothing more of it may be. */
const unpacked = new WeakMap<FetchedBatches, number>()
/** How many ms it took to unpack what a fetch brought, whose parts share its memory. */
const spentMs = new WeakMap<ArrayBufferLike, number>()
/** Small batches may take long. Until all parts of a fetch are unpacked, none is processed, and no heartbeat is sent. */
const LONGEST_MS = 250

/**
 * KafkaJS 2.2.4 reads only gzip, without a size limit, and one batch that it cannot decode stops its consumer for
 * ever. So payoutd replaces its decoder of record batches. KafkaJS loads the decoder when it decodes the first
 * fetch.
 */
export function readAllBatches(): void {
  if (!('zstdDecompress' in zlib))
    throw new ExpectedFailure('payoutd needs Node 22.15 or later, which reads zstd')
  require(DECODER)
  const cached = require.cache[require.resolve(DECODER)]
  if (cached) cached.exports = nextBatch
}

async function nextBatch(fetched: FetchedBatches): Promise<{ records: BatchMessage[] }> {
  const { buffer, offset } = fetched
  const end = offset + BEFORE + buffer.readInt32BE(offset + 8)
  const before = unpacked.get(fetched)
  const spent = spentMs.get(buffer.buffer) ?? 0
  // The next fetch returns what is left out here: of each partition one batch is read, and more only within both limits.
  const isEnough = before !== undefined && (before > LIMITS.bytes || spent > LONGEST_MS)
  if (end > buffer.length || isEnough) throw partial()
  const began = performance.now()
  const batch = buffer.subarray(offset, end)
  if (!isIntact(batch)) {
    // It always comes alone, so that it is fetched again without what stands before it, and nothing behind it is skipped.
    if (before !== undefined) throw partial()
    unpacked.set(fetched, Number.POSITIVE_INFINITY)
    return { records: [damagedBatch(buffer.subarray(offset))] }
  }
  fetched.offset = end
  const records = await readRecordBatch(batch)
  spentMs.set(buffer.buffer, spent + performance.now() - began)
  unpacked.set(fetched, (before ?? 0) + sizeOf(records))
  return { records }
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
