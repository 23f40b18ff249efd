import { createRequire } from 'node:module';
import zlib from 'node:zlib';
import { ExpectedFailure } from "../expected-failure.js";
import { LIMITS, readRecordBatch } from "./record-batch.js";
const require = createRequire(import.meta.url);
const DECODER = 'kafkajs/src/protocol/recordBatch/v0/decoder.js';
/** Offset and length stand before what the length counts. */
const BEFORE = 12;
/** How many bytes of a fetch have been unpacked. */
const unpacked = new WeakMap();
/**
 * KafkaJS 2.2.4 reads gzip alone, without a bound, and one batch that it cannot decode stops its consumer for ever:
 * so its decoder of record batches is replaced by ours. It asks for it when it decodes the first fetch.
 */
export function readAllBatches() {
    if (!('zstdDecompress' in zlib))
        throw new ExpectedFailure('payoutd needs Node 22.15 or later, which reads zstd');
    require(DECODER);
    const cached = require.cache[require.resolve(DECODER)];
    if (cached)
        cached.exports = nextBatch;
}
async function nextBatch(fetched) {
    const { buffer, offset } = fetched;
    const end = offset + BEFORE + buffer.readInt32BE(offset + 8);
    const before = unpacked.get(fetched) ?? 0;
    // What is left out is fetched again, next: so memory holds so much of a partition, and one batch more.
    if (end > buffer.length || before > LIMITS.bytes)
        throw partial();
    fetched.offset = end;
    const records = await readRecordBatch(buffer.subarray(offset, end));
    unpacked.set(fetched, before + sizeOf(records));
    return { records };
}
const sizeOf = (records) => records.reduce((sum, { key, value }) => sum + (key?.length ?? 0) + (value?.length ?? 0), 0);
/** What KafkaJS takes for a batch that is cut off. */
function partial() {
    const error = new Error('the rest is left for the next fetch');
    error.name = 'KafkaJSPartialMessageError';
    return error;
}
