import { connectAdmin } from "./admin.js";
import { readTopics } from "./reader.js";
/**
 * Hands over every record that a topic holds now, those of one partition in their order, and resolves after the
 * last; what arrives meanwhile is left out. For topics that are written without transactions: their last
 * offset is a record. Rejects when Kafka cannot be asked, or has no such topic.
 */
export async function readTopic(options) {
    const { connection, topic, onRecord, log } = options;
    const last = await lastOffsets(connection, topic, log);
    if (last.size === 0)
        return;
    const { promise: done, resolve } = Promise.withResolvers();
    const reader = readTopics({
        connection,
        topics: [topic],
        onRecord: (record) => {
            const until = last.get(record.partition);
            if (until === undefined)
                return;
            if (record.offset <= until)
                onRecord(record);
            if (record.offset >= until)
                last.delete(record.partition);
            if (last.size === 0)
                resolve();
        },
        log,
    });
    await done;
    await reader.stop();
}
/** By partition; those that hold nothing are left out. */
async function lastOffsets(connection, topic, log) {
    const admin = await connectAdmin(connection, log);
    try {
        const ranges = await admin.ranges(topic);
        return new Map(ranges.filter(({ low, high }) => low !== high).map(({ partition, high }) => [partition, high - 1n]));
    }
    finally {
        await admin.close();
    }
}
