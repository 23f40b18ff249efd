import { COMPRESSIONS, decompress } from "./decompress.js";
/**
 * What one batch may come to. Producers fill batches of a megabyte before they compress them, so nobody who means
 * well comes near; a few hundred bytes of zstd can stand for gigabytes, and KafkaJS cannot take in more records at once
 * nor, for its way to collect headers, thousands of those.
 */
export const LIMITS = { bytes: 16 * 1024 * 1024, records: 50_000, headers: 100 };
/** Of magic byte, length and the rest, up to the first record. Source: Kafka documentation, "Record Batch". */
const HEADER = 61;
const [TRANSACTIONAL, CONTROL, APPEND_TIME, COMPRESSION] = [0x10, 0x20, 0x08, 0x07];
/**
 * The messages of one whole record batch. One that cannot be decompressed or decoded within LIMITS is one message at
 * its last offset, which says so: a partition does not stop at it.
 */
export async function readRecordBatch(batch) {
    const context = contextOf(batch);
    const count = batch.readInt32BE(57);
    try {
        if (count > LIMITS.records)
            throw new Error(`${count} records`);
        const cursor = new Cursor(await decompress(batch.subarray(HEADER), context.compression, LIMITS.bytes));
        const messages = [];
        for (let i = 0; i < count; i++)
            messages.push(readRecord(cursor, context));
        return messages;
    }
    catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        const { first, last, compression } = context;
        const detail = `a batch (${compression}) of the offsets ${first} to ${last} cannot be read: ${why}`;
        const unreadable = { reason: 'unreadable-batch', detail };
        return [{ ...message(context, last, context.maxTimestamp), unreadable }];
    }
}
function contextOf(batch) {
    const first = batch.readBigInt64BE(0);
    const attributes = batch.readInt16BE(21);
    return {
        first,
        last: first + BigInt(batch.readInt32BE(23)),
        compression: COMPRESSIONS[attributes & COMPRESSION] ?? 'none',
        isAppendTime: (attributes & APPEND_TIME) !== 0,
        firstTimestamp: Number(batch.readBigInt64BE(27)),
        maxTimestamp: Number(batch.readBigInt64BE(35)),
        isControlRecord: (attributes & CONTROL) !== 0,
        batchContext: {
            producerId: batch.readBigInt64BE(43).toString(),
            inTransaction: (attributes & TRANSACTIONAL) !== 0,
        },
    };
}
const message = ({ isControlRecord, batchContext }, offset, timestamp) => ({
    offset: offset.toString(),
    timestamp: timestamp.toString(),
    attributes: 0,
    key: null,
    value: null,
    headers: {},
    isControlRecord,
    batchContext,
});
function readRecord(batch, context) {
    const record = new Cursor(batch.take(batch.number()));
    record.take(1);
    const timestamp = context.firstTimestamp + record.number();
    const offset = context.first + BigInt(record.number());
    const read = message(context, offset, context.isAppendTime ? context.maxTimestamp : timestamp);
    read.key = record.bytes();
    read.value = record.bytes();
    const count = record.number();
    if (count > LIMITS.headers) {
        return { ...read, unreadable: { reason: 'too-many-headers', detail: `${count} headers` } };
    }
    const headers = Object.create(null);
    read.headers = headers;
    for (let i = 0; i < count; i++) {
        const name = record.take(record.number()).toString();
        const value = record.bytes();
        const before = headers[name];
        headers[name] = before === undefined ? value : [before, value].flat();
    }
    return read;
}
/** Reads forward, and throws rather than beyond the end. */
class Cursor {
    #bytes;
    #at = 0;
    constructor(bytes) {
        this.#bytes = bytes;
    }
    /** A zigzag varint; exact up to 2^53. */
    number() {
        let value = 0;
        for (let scale = 1; scale <= 2 ** 63; scale *= 128) {
            const byte = this.#bytes.readUInt8(this.#at++);
            value += (byte & 0x7f) * scale;
            if (byte < 0x80)
                return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
        }
        throw new Error('a number without an end');
    }
    take(length) {
        const end = this.#at + length;
        if (length < 0 || end > this.#bytes.length)
            throw new Error('a record ends early');
        const taken = this.#bytes.subarray(this.#at, end);
        this.#at = end;
        return taken;
    }
    /** Null where the length is -1. */
    bytes() {
        const length = this.number();
        return length === -1 ? null : this.take(length);
    }
}
