import { randomUUID } from 'node:crypto'
import type { Admin } from 'kafkajs'
import type { Logger } from '../log.ts'
import { waitFor } from '../running/lifecycle.ts'
import { type KafkaConnection, kafkaFor } from './connection.ts'
import { consumeBatches } from './consumer.ts'
import { type Standing, type Start, startAt } from './offsets.ts'
import type { TopicRecord } from './records.ts'

/**
 * Reads topics from the beginning and goes on with new records until stopped, outside any visible group: for tests,
 * demonstrations and a person who looks.
 */
export function readTopics(options: {
  connection: KafkaConnection
  topics: string[]
  onRecord: (record: TopicRecord & { topic: string }) => void | Promise<void>
  /** Called with the offset at which a partition is read on, and what is remarkable, whenever it begins, and after each batch. */
  onPosition?: (partition: number, at: Start) => void
  log: Logger
}): { stop(): Promise<void> } {
  const { connection, topics, onRecord, onPosition, log } = options
  const groupId = `payoutd-reader-${randomUUID()}`
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
      onPosition?.(partition, { offset, remark })
      return standing
    },
    handler: async ({ topic, partition, records, nextOffset, stored }) => {
      for (const record of records) await onRecord({ ...record, topic, partition })
      standings.set(`${topic}/${partition}`, { ...stored, offset: nextOffset })
      onPosition?.(partition, { offset: nextOffset, remark: 'none' })
    },
    log,
  })
  return {
    async stop() {
      await consumption.stop()
      const ended = new AbortController()
      const work = deleteGroup(groupId, kafkaFor(connection, log, ended.signal).admin())
      // Kafka forgets an empty group by itself, some day.
      await waitFor(
        work.catch((err: unknown) => log.debug({ err }, 'group not deleted')),
        GROUP_DELETED_WITHIN_MS,
      )
      ended.abort()
    },
  }
}

const GROUP_DELETED_WITHIN_MS = 5_000

async function deleteGroup(groupId: string, admin: Admin): Promise<void> {
  await admin.connect()
  try {
    await admin.deleteGroups([groupId])
  } finally {
    await admin.disconnect()
  }
}
