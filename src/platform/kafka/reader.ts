import { systemIds } from '../ids.ts'
import type { Logger } from '../log.ts'
import { type KafkaConnection, kafkaFor } from './connection.ts'
import { consumeBatches } from './consumer.ts'
import { type Standing, startAt } from './offsets.ts'
import type { IncomingRecord } from './records.ts'

/**
 * Reads topics from the beginning and goes on with new records until stopped, outside any visible group: for tests,
 * demonstrations and a person who looks.
 */
export function readTopics(options: {
  connection: KafkaConnection
  topics: string[]
  onRecord: (record: IncomingRecord & { topic: string; partition: number }) => void | Promise<void>
  /** Called with the offset at which a partition is read on, at first and after each batch. */
  onPosition?: (partition: number, offset: bigint) => void
  log: Logger
}): { stop(): Promise<void> } {
  const { connection, topics, onRecord, onPosition, log } = options
  const groupId = `payoutd-reader-${systemIds.uuid()}`
  const standings = new Map<string, Standing>()
  const consumption = consumeBatches({
    connection,
    groupId,
    topics,
    partitionsAtOnce: 1,
    begin: async ({ topic, partition }, log) => {
      const key = `${topic}/${partition}`
      const before = standings.get(key) ?? null
      const held = await log()
      const { offset, remark } = startAt(before, held)
      const standing = { offset, logId: held.id }
      if (before === null || remark !== 'none') standings.set(key, standing)
      onPosition?.(partition, offset)
      return standing
    },
    handler: async ({ topic, partition, records, nextOffset, stored }) => {
      for (const record of records) await onRecord({ ...record, topic, partition })
      standings.set(`${topic}/${partition}`, { ...stored, offset: nextOffset })
      onPosition?.(partition, nextOffset)
    },
    log,
  })
  return {
    async stop() {
      await consumption.stop()
      const ended = new AbortController()
      const admin = kafkaFor(connection, log, ended.signal).admin()
      try {
        await admin.connect()
        await admin
          .deleteGroups([groupId])
          .catch((error: unknown) => log.debug({ err: error }, 'group not deleted'))
        await admin.disconnect()
      } finally {
        ended.abort()
      }
    },
  }
}
