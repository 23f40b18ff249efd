import type { KafkaMessage } from 'kafkajs'
import type { Unreadable } from '../../records.ts'
import { COMPRESSIONS, decompress } from './decompress.ts'

/**
 * Limits of one batch. Producers fill batches of a megabyte before they compress them, so no honest producer comes
 * near. But a few hundred bytes of zstd can unpack to gigabytes, KafkaJS cannot take more records at once, and each
 * header, two bytes at least, takes a hundred times as much memory. `headers`: of one record; `allHeaders`: of the
 * batch.
 */
export const LIMITS = { bytes: 16 * 1024 * 1024, records: 50_000, headers: 100, allHeaders: 250_000 }

/** From magic byte and length up to the first record. Source: Kafka documentation, "Record Batch". */
const HEADER = 61
const [TRANSACTIONAL, CONTROL, APPEND_TIME, COMPRESSION] = [0x10, 0x20, 0x08, 0x07]

/**
 * What is known of where a damaged batch ends. `named`: its last offset by its own header, which may be what is damaged; `next`:
 * the first offset of the intact batch right behind it, null if the fetch has none.
 */
export type DamagedEnd = { named: bigint; next: bigint | null }

/** A message as KafkaJS creates it, plus what payoutd needs to leave out aborted transactions. */
export type BatchMessage = KafkaMessage & {
  isControlRecord: boolean
  /** Marks the end of what was fetched, not a record. */
  isPassedOver?: boolean
  /** The epoch of the leader that wrote it; null: it had none. */
  leaderEpoch: number | null
  batchContext: { producerId: string; inTransaction: boolean }
  /** Why `value` is not what the producer wrote. */
  unreadable?: Unreadable | undefined
  /** The first offset of its batch by the header, where no checksum covers it. */
  batchFirst: bigint
  /** It stands for a damaged batch, which another fetch may bring intact. */
  damaged?: DamagedEnd
}

/**
 * The messages of one whole record batch. If payoutd cannot decompress or decode a batch within LIMITS, it returns
 * one message at the last offset that says so: the partition does not stop there. The broker writes the offsets of
 * the header but does not check those that a producer wrote into uncompressed records. A batch is also unreadable
 * if one of its offsets lies outside it or does not follow the one before. The last message always has the last
 * offset: if no record has it (compaction), it is a control record, which reaches nobody, so that reading goes on
 * after the batch.
 */
export async function readRecordBatch(batch: Buffer): Promise<BatchMessage[]> {
  const context = contextOf(batch)
  const count = batch.readInt32BE(57)
  try {
    if (count > LIMITS.records) throw new Error(`${count} records`)
    const cursor = new Cursor(await decompress(batch.subarray(HEADER), context.compression, LIMITS.bytes))
    const messages: BatchMessage[] = []
    const left = { headers: LIMITS.allHeaders }
    let least = context.first
    for (let i = 0; i < count; i++) {
      const read = readRecord(cursor, context, left)
      const offset = BigInt(read.offset)
      if (offset < least || offset > context.last) throw new Error(`record ${i} has an offset of its own`)
      least = offset + 1n
      messages.push(read)
    }
    if (least <= context.last) messages.push(passedOver(context))
    return messages
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    const { first, last, compression } = context
    const detail = `a batch (${compression}) of the offsets ${first} to ${last} cannot be read: ${why}`
    const unreadable = { reason: 'unreadable-batch' as const, detail }
    return [{ ...message(context, last, context.maxTimestamp), unreadable }]
  }
}

type Context = ReturnType<typeof contextOf>

function contextOf(batch: Buffer) {
  const first = batch.readBigInt64BE(0)
  const attributes = batch.readInt16BE(21)
  const epoch = batch.readInt32BE(12)
  return {
    first,
    last: first + BigInt(batch.readInt32BE(23)),
    compression: COMPRESSIONS[attributes & COMPRESSION] ?? 'none',
    isAppendTime: (attributes & APPEND_TIME) !== 0,
    firstTimestamp: Number(batch.readBigInt64BE(27)),
    maxTimestamp: Number(batch.readBigInt64BE(35)),
    leaderEpoch: epoch < 0 ? null : epoch,
    isControlRecord: (attributes & CONTROL) !== 0,
    batchContext: {
      producerId: batch.readBigInt64BE(43).toString(),
      inTransaction: (attributes & TRANSACTIONAL) !== 0,
    },
  }
}

const message = (
  { first, isControlRecord, leaderEpoch, batchContext }: Context,
  offset: bigint,
  timestamp: number,
): BatchMessage => ({
  offset: offset.toString(),
  timestamp: timestamp.toString(),
  attributes: 0,
  key: null,
  value: null,
  headers: {},
  isControlRecord,
  leaderEpoch,
  batchContext,
  batchFirst: first,
})

const passedOver = (context: Context): BatchMessage => ({
  ...message(context, context.last, context.maxTimestamp),
  isControlRecord: true,
})

/** `left`: how many more headers the batch may have. */
function readRecord(batch: Cursor, context: Context, left: { headers: number }): BatchMessage {
  const record = new Cursor(batch.take(batch.number()))
  record.take(1)
  const timestamp = context.firstTimestamp + record.number()
  const offset = context.first + BigInt(record.number())
  const read = message(context, offset, context.isAppendTime ? context.maxTimestamp : timestamp)
  read.key = record.bytes()
  read.value = record.bytes()
  const count = record.number()
  if (count > LIMITS.headers) {
    return { ...read, unreadable: { reason: 'too-many-headers', detail: `${count} headers` } }
  }
  left.headers -= count
  if (left.headers < 0) throw new Error(`more than ${LIMITS.allHeaders} headers`)
  const headers: Record<string, Buffer | Buffer[]> = Object.create(null)
  read.headers = headers
  for (let i = 0; i < count; i++) {
    const name = record.take(record.number()).toString()
    const value = record.bytes() as Buffer
    const before = headers[name]
    if (Array.isArray(before)) before.push(value)
    else headers[name] = before === undefined ? value : [before, value]
  }
  return read
}

/** Reads forward, and throws instead of reading past the end. */
class Cursor {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** A zigzag varint; exact up to 2^53. */
  number(): number {
    let value = 0
    for (let scale = 1; scale <= 2 ** 63; scale *= 128) {
      const byte = this.#bytes.readUInt8(this.#at++)
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value % 2 === 0 ? value / 2 : -(value + 1) / 2
    }
    throw new Error('a number without an end')
  }

  take(length: number): Buffer {
    const end = this.#at + length
    if (length < 0 || end > this.#bytes.length) throw new Error('a record ends early')
    const taken = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return taken
  }

  /** Null where the length is -1. */
  bytes(): Buffer | null {
    const length = this.number()
    return length === -1 ? null : this.take(length)
  }
}
