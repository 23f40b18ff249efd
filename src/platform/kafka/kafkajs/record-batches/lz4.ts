const MAGIC = 0x184d2204

/** The output so far; never more than `limit` bytes. */
class Output {
  readonly #limit: number
  #bytes = Buffer.allocUnsafe(64 * 1024)
  length = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  append(bytes: Buffer): void {
    this.#makeRoom(bytes.length)
    bytes.copy(this.#bytes, this.length)
    this.length += bytes.length
  }

  /** Repeats the bytes from `distance` before the end; the copy may overlap what it writes. */
  repeat(distance: number, length: number): void {
    if (distance === 0 || distance > this.length) throw new Error('LZ4: a match before the beginning')
    this.#makeRoom(length)
    const bytes = this.#bytes
    for (const end = this.length + length; this.length < end; this.length++) {
      bytes[this.length] = bytes[this.length - distance] as number
    }
  }

  content(): Buffer {
    return this.#bytes.subarray(0, this.length)
  }

  #makeRoom(more: number): void {
    const wanted = this.length + more
    if (wanted > this.#limit) throw new Error(`LZ4: more than ${this.#limit} bytes`)
    if (wanted <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(wanted, 2 * this.#bytes.length))
    this.#bytes.copy(larger, 0, 0, this.length)
    this.#bytes = larger
  }
}

/**
 * The content of one LZ4 frame. Throws if it exceeds `limit` bytes or the frame is not whole. Does not check
 * checksums. Source: LZ4 Frame Format 1.6.4, LZ4 Block Format.
 */
export function lz4Decompress(frame: Buffer, limit: number): Buffer {
  if (frame.readUInt32LE(0) !== MAGIC) throw new Error('LZ4: no frame')
  const flags = frame.readUInt8(4)
  const [hasBlockChecksums, hasSize, hasDictionary] = [flags & 0x10, flags & 0x08, flags & 0x01]
  if (hasDictionary) throw new Error('LZ4: it needs a dictionary')
  const output = new Output(limit)
  let at = hasSize ? 15 : 7
  for (;;) {
    const size = frame.readUInt32LE(at)
    if (size === 0) return output.content()
    const isStored = size >= 0x8000_0000
    const begin = at + 4
    at = begin + (size & 0x7fff_ffff)
    if (at > frame.length) throw new Error('LZ4: a block ends early')
    const block = frame.subarray(begin, at)
    if (isStored) output.append(block)
    else readBlock(block, output)
    if (hasBlockChecksums) at += 4
  }
}

/** Sequences of literals and a match; the last one has only literals. */
function readBlock(block: Buffer, output: Output): void {
  let at = 0
  /** A length that starts in four bits and continues in as many bytes as it needs. */
  const lengthFrom = (bits: number): number => {
    let length = bits
    if (bits < 15) return length
    for (;;) {
      const byte = block.readUInt8(at++)
      length += byte
      if (byte < 255) return length
    }
  }
  while (at < block.length) {
    const token = block.readUInt8(at++)
    const literals = lengthFrom(token >> 4)
    if (at + literals > block.length) throw new Error('LZ4: literals end early')
    output.append(block.subarray(at, at + literals))
    at += literals
    if (at === block.length) return
    const distance = block.readUInt16LE(at)
    at += 2
    output.repeat(distance, lengthFrom(token & 15) + 4)
  }
}
