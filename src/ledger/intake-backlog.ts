import type { Log } from '../platform/kafka/offsets.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { countWaiting, intakeOffsets } from './sql/intake-offsets.ts'

/** The offsets that a partition of commands holds now: from `low` up to, and without, `high`. */
export type PartitionEnd = Log & { partition: number }

/** Counts messages that intake has not stored, or has set aside. Messages that Kafka has dropped do not count. */
export async function intakeBacklog(
  topic: string,
  ends: readonly PartitionEnd[],
  db: Database,
): Promise<bigint> {
  const [waiting] = await db.run(countWaiting, { topic })
  const unread = await unreadCommands(topic, ends, db)
  return [...unread.values()].reduce((sum, count) => sum + count, waiting?.count ?? 0n)
}

/** By partition, the messages that intake has neither stored nor set aside. */
export async function unreadCommands(
  topic: string,
  ends: readonly PartitionEnd[],
  db: Database,
): Promise<ReadonlyMap<number, bigint>> {
  const stored = new Map(
    (await db.run(intakeOffsets, { topic })).map((standing) => [standing.partition, standing]),
  )
  return new Map(
    ends.map(({ partition, id, low, high }) => {
      const standing = stored.get(partition)
      // An offset in another log says nothing about this one.
      const next = standing && (id === null || standing.logId === id) ? standing.offset : low
      const from = next > low ? next : low
      return [partition, high > from ? high - from : 0n]
    }),
  )
}
