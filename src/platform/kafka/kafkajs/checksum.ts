// @ts-expect-error: inside KafkaJS, not part of its types
import crc32c from 'kafkajs/src/protocol/recordBatch/crc32C/index.js'

/** Where the checksum stands, and where what it covers begins. Source: Kafka documentation, "Record Batch". */
const [CHECKSUM, COVERED] = [17, 21]

/**
 * Whether a whole record batch has the bytes that its producer wrote. KafkaJS 2.2.4 does not check that. First offset, length,
 * leader epoch and format are not covered: the broker writes them.
 */
export const isIntact = (batch: Buffer): boolean =>
  batch.length >= COVERED && crc32c(batch.subarray(COVERED)) === batch.readUInt32BE(CHECKSUM)
