import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readHeader } from "./format.js";
import { readRecords, UnreadableFile } from "./records.js";
import { readRow } from "./row.js";
/** Small enough that the records of one chunk do not outlive a young-generation collection. */
const CHUNK_BYTES = 64 * 1024;
/**
 * Streams the rows of a file, header and blank rows left out, in constant memory; returns the SHA-256 of its
 * bytes in hex. `onBytes` hears how many were read so far. Throws UnreadableFile when the file as a whole
 * cannot be read.
 */
export async function* readPayroll({ path, batch, referenceFrom }, onBytes) {
    const hash = createHash('sha256');
    const records = readRecords(bytesOf(path, onBytes), hash);
    const first = await records.next();
    if (first.done)
        throw new UnreadableFile(['the file is empty']);
    const header = readHeader(first.value, referenceFrom);
    if ('faults' in header)
        throw new UnreadableFile(header.faults);
    let number = 1;
    let rows = 0;
    for await (const cells of records) {
        const row = readRow(cells, ++number, header, batch);
        if (row.kind === 'blank')
            continue;
        rows++;
        yield row;
    }
    if (rows === 0)
        throw new UnreadableFile(['the file has no rows below its header']);
    return hash.digest('hex');
}
async function* bytesOf(path, onBytes) {
    let bytes = 0;
    for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
        const buffer = chunk;
        bytes += buffer.length;
        onBytes(bytes);
        yield buffer;
    }
}
