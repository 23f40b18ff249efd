import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readRecords, UnreadableFile } from './file/csv-records.ts'
import { readColumns } from './file/format.ts'
import { type PayrollBatch, type PayrollRow, readRow } from './file/row.ts'

/** A payroll file and how to read it. */
export type Payroll = { path: string; batch: PayrollBatch; referenceFrom: readonly string[] }

/** A file after it was read to its end: the SHA-256 of its bytes in hex, and whether its last line has an end. */
export type Whole = { fileHash: string; lastLineEnds: boolean }

/** Small enough that the records of one chunk do not outlive a young-generation collection. */
const CHUNK_BYTES = 64 * 1024
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d

/**
 * Streams the rows of a file, without header and blank rows, in constant memory; returns what is known at its end. Calls
 * `onBytes` with the number of bytes read so far. Throws UnreadableFile if the file as a whole cannot be read.
 */
export async function* readPayroll(
  { path, batch, referenceFrom }: Payroll,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Exclude<PayrollRow, { kind: 'blank' }>, Whole | undefined> {
  const hash = createHash('sha256')
  let last: number | undefined
  const onChunk = (chunk: Buffer, bytes: number) => {
    last = chunk.at(-1)
    onBytes(bytes)
  }
  const records = readRecords(bytesOf(path, onChunk), hash)
  const first = await records.next()
  if (first.done) throw new UnreadableFile(['the file is empty'])
  const header = readColumns(first.value, referenceFrom)
  if ('faults' in header) throw new UnreadableFile(header.faults)
  let number = 1
  let rows = 0
  for await (const cells of records) {
    const row = readRow(cells, ++number, header, batch)
    if (row.kind === 'blank') continue
    rows++
    yield row
  }
  if (rows === 0) throw new UnreadableFile(['the file has no rows below its header'])
  return { fileHash: hash.digest('hex'), lastLineEnds: last === LINE_FEED || last === CARRIAGE_RETURN }
}

async function* bytesOf(
  path: string,
  onChunk: (chunk: Buffer, bytes: number) => void,
): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
    const buffer = chunk as Buffer
    bytes += buffer.length
    onChunk(buffer, bytes)
    yield buffer
  }
}
