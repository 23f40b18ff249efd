import type { Log } from '../platform/kafka/offsets.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { countWaiting, intakeOffsets } from './sql/kafka/intake-offsets.ts'

/** The offsets that a partition of commands holds now: from `low` up to, and without, `high`. */
export type PartitionEnd = Log & { partition: number }

/** The commands that a topic held when its ends were read, and of whom they count once intake has set them aside. */
export type Backlog = { topic: string; ends: readonly PartitionEnd[]; merchantIds: readonly string[] }

/**
 * Counts messages that intake has not read, whosever they are, and those of these merchants that it has set aside. Messages that
 * Kafka has dropped do not count.
 */
export async function intakeBacklog({ topic, ends, merchantIds }: Backlog, db: Database): Promise<bigint> {
  // What intake sets aside in between counts twice, never not at all.
  const unread = await unreadCommands(topic, ends, db)
  const [waiting] = await db.run(countWaiting, { topic, merchantIds: [...merchantIds] })
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
