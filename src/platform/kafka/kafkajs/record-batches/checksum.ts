// @ts-expect-error: inside KafkaJS, not part of its types
import crc32c from 'kafkajs/src/protocol/recordBatch/crc32C/index.js'

/** Where format and checksum stand, and where what it covers begins. Source: Kafka documentation, "Record Batch". */
const [FORMAT, CHECKSUM, COVERED] = [16, 17, 21]
/** Since Kafka 0.11; the older ones have another checksum, and nobody writes them. */
const READABLE = 2

/**
 * Whether a whole record batch has the bytes that its producer wrote. KafkaJS 2.2.4 does not check that. First offset, length
 * and leader epoch are not covered: the broker writes them. The format is not covered, but there is only one.
 */
export const isIntact = (batch: Buffer): boolean =>
  batch.length >= COVERED &&
  batch[FORMAT] === READABLE &&
  crc32c(batch.subarray(COVERED)) === batch.readUInt32BE(CHECKSUM)
