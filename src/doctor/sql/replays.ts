import { sql } from '../../platform/postgres/postgres.ts'

/** `topics`: the log, under its current name and under the one from before payoutd kept its id. */
type Ranges = { topics: string[]; held: readonly { partition: number; low: bigint; high: bigint }[] }

/** How many of the dead letters that the topic holds were replayed. */
export const replayedOf = sql<Ranges, { count: number }>`
  select count(distinct (r.partition, r.position))::int as count
  from ${{ rows: 'held', columns: { partition: 'int', low: 'bigint', high: 'bigint' } }} held
  join dlq_replays r on r.topic = any(${'topics'}::text[]) and r.partition = held.partition
    and r.position >= held.low and r.position < held.high`
