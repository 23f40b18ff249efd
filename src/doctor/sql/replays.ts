import { sql } from '../../platform/postgres/postgres.ts'

/** `topics`: the log, under its current name and under the one from before payoutd kept its id. */
type Ranges = { topics: string[]; partitions: number[]; lows: bigint[]; highs: bigint[] }

/** How many of the dead letters that the topic holds were replayed. */
export const replayedOf = sql<Ranges, { count: number }>`
  select count(distinct (r.partition, r.position))::int as count
  from unnest(${'partitions'}::int[], ${'lows'}::bigint[], ${'highs'}::bigint[]) as held (partition, low, high)
  join dlq_replays r on r.topic = any(${'topics'}::text[]) and r.partition = held.partition
    and r.position >= held.low and r.position < held.high`
