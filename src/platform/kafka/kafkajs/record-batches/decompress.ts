import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { snappyUncompressor } from 'hysnappy'
import { lz4Decompress } from './lz4.ts'

/** In the order of Kafka's codec numbers. Source: Kafka documentation, "Record Batch", attributes. */
export const COMPRESSIONS = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const
export type Compression = (typeof COMPRESSIONS)[number]

/** Decompresses what Kafka's producers compress. Rejects if the content is damaged or exceeds `limit` bytes. */
export async function decompress(bytes: Buffer, compression: Compression, limit: number): Promise<Buffer> {
  switch (compression) {
    case 'none':
      return bytes
    case 'gzip':
      return promisify(zlib.gunzip)(bytes, { maxOutputLength: limit })
    case 'snappy':
      return bytes.subarray(0, XERIAL.length).equals(XERIAL) ? xerial(bytes, limit) : snappy(bytes, limit)
    case 'lz4':
      return lz4Decompress(bytes, limit)
    case 'zstd':
      return zstd(bytes, limit)
  }
}

/**
 * Producers make one. Each costs a decompressor, which may reserve a window of 128 MB and make the garbage collector run, for nine
 * bytes.
 */
const MOST_FRAMES = 16

/** The content may be cut into frames, of which Node reads the first. Source: RFC 8878, 3. */
async function zstd(bytes: Buffer, limit: number): Promise<Buffer> {
  const frames: Buffer[] = []
  let left = limit
  for (let at = 0; at < bytes.length; ) {
    if (frames.length === MOST_FRAMES) throw new Error(`zstd: more than ${MOST_FRAMES} frames`)
    const frame = await zstdFrame(bytes.subarray(at), left)
    if (frame.bytesRead === 0 || frame.content.length > left)
      throw new Error(`zstd: more than ${limit} bytes, or none`)
    frames.push(frame.content)
    left -= frame.content.length
    at += frame.bytesRead
  }
  return Buffer.concat(frames)
}

function zstdFrame(bytes: Buffer, limit: number): Promise<{ content: Buffer; bytesRead: number }> {
  return new Promise((resolve, reject) => {
    const options = { maxOutputLength: Math.max(1, limit), info: true }
    zlib.zstdDecompress(bytes, options, (error, result) => {
      if (error) return reject(error)
      const { buffer, engine } = result as unknown as { buffer: Buffer; engine: { bytesWritten: number } }
      resolve({ content: buffer, bytesRead: engine.bytesWritten })
    })
  })
}

/**
 * The data begins with the length of its content. Source: Snappy format description. `uncompress` takes a
 * millisecond to create, so the blocks of a batch share one. Two batches never share one, because it keeps its last
 * input.
 */
function snappy(bytes: Buffer, limit: number, uncompress = snappyUncompressor()): Buffer {
  let length = 0
  for (let i = 0, byte = 0x80; byte >= 0x80; i++) {
    if (i === 5) throw new Error('Snappy: the length is no number')
    byte = bytes.readUInt8(i)
    length += (byte & 0x7f) * 128 ** i
  }
  if (length > limit) throw new Error(`Snappy: more than ${limit} bytes`)
  const content = uncompress(bytes, length)
  return Buffer.from(content.buffer, content.byteOffset, content.byteLength)
}

/** Java clients cut the content into blocks. Source: snappy-java, SnappyOutputStream. */
const XERIAL = Buffer.from('\x82SNAPPY\0', 'latin1')
const XERIAL_HEADER = 16

function xerial(bytes: Buffer, limit: number): Buffer {
  const uncompress = snappyUncompressor()
  const blocks: Buffer[] = []
  let left = limit
  for (let at = XERIAL_HEADER; at < bytes.length; ) {
    const begin = at + 4
    at = begin + bytes.readUInt32BE(at)
    if (at > bytes.length) throw new Error('Snappy: a block ends early')
    const block = snappy(bytes.subarray(begin, at), left, uncompress)
    left -= block.length
    blocks.push(block)
  }
  return Buffer.concat(blocks)
}
