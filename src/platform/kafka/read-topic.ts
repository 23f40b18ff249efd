import type { Logger } from '../log.ts'
import { connectAdmin } from './admin.ts'
import type { KafkaConnection } from './connection.ts'
import { readTopics } from './reader.ts'
import type { IncomingRecord } from './records.ts'

/**
 * Passes on every record that a topic holds now, in order within a partition, and resolves after the last; leaves
 * out what arrives meanwhile. Only for topics written without transactions: their last offset is a record. Rejects
 * if Kafka does not answer or has no such topic.
 */
export async function readTopic(options: {
  connection: KafkaConnection
  topic: string
  onRecord: (record: IncomingRecord & { partition: number }) => void | Promise<void>
  log: Logger
}): Promise<void> {
  const { connection, topic, onRecord, log } = options
  const last = await lastOffsets(connection, topic, log)
  if (last.size === 0) return
  const { promise: done, resolve } = Promise.withResolvers<void>()
  const reader = readTopics({
    connection,
    topics: [topic],
    onRecord: async (record) => {
      const until = last.get(record.partition)
      if (until === undefined) return
      if (record.offset <= until) await onRecord(record)
      if (record.offset >= until) last.delete(record.partition)
      if (last.size === 0) resolve()
    },
    log,
  })
  await done
  await reader.stop()
}

/** By partition; empty ones are left out. */
async function lastOffsets(
  connection: KafkaConnection,
  topic: string,
  log: Logger,
): Promise<Map<number, bigint>> {
  const admin = await connectAdmin(connection, log)
  try {
    const ranges = await admin.ranges(topic)
    return new Map(
      ranges.filter(({ low, high }) => low !== high).map(({ partition, high }) => [partition, high - 1n]),
    )
  } finally {
    await admin.close()
  }
}
