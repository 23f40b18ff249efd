import { readdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { sum } from './statistics.ts'

/** A PostgreSQL process reports what it did at latest this long after it has become idle (PGSTAT_IDLE_INTERVAL in its pgstat.c). */
const REPORTED_AFTER_MS = 10_500

/** What PostgreSQL has done. Rows by table, whether they were inserted, updated or deleted. */
export type DatabaseWork = { commits: number; walBytes: number; fsyncs: number; rows: Record<string, number> }

/**
 * Counts what the server does from now on; nothing else may use it meanwhile. The function it returns resolves with that. A commit
 * counts if it wrote something. What an idle worker does until its server's counters are complete is in fsyncs and rows, too.
 */
export async function countDatabaseWork(databaseUrl: string): Promise<() => Promise<DatabaseWork>> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  const ask = async <Row extends object>(text: string) => (await client.query<Row>(text)).rows
  const before = await counters()
  return async () => {
    const { commits, walBytes } = await counters()
    await delay(REPORTED_AFTER_MS)
    const { fsyncs } = await counters()
    const tables = await ask<{ name: string; rows: number }>(ROWS)
    await client.end()
    return {
      commits: commits - before.commits,
      walBytes: walBytes - before.walBytes,
      fsyncs: fsyncs - before.fsyncs,
      rows: Object.fromEntries(tables.map(({ name, rows }) => [name, rows])),
    }
  }

  async function counters(): Promise<Omit<DatabaseWork, 'rows'>> {
    const [row] = await ask<Omit<DatabaseWork, 'rows'>>(COUNTERS)
    if (!row) throw new Error('PostgreSQL has no counters')
    return row
  }
}

const COUNTERS = `
  select pg_current_xact_id()::text::float8 as commits, (pg_current_wal_lsn() - '0/0')::float8 as "walBytes",
    (select sum(fsyncs)::float8 from pg_stat_io where object = 'wal') as fsyncs`

/** Partitions count with their table. A database is new when its run begins, so these need no difference. */
const ROWS = `
  select coalesce(pg_partition_root(relid)::regclass::text, relname) as name,
    sum(n_tup_ins + n_tup_upd + n_tup_del)::float8 as rows
  from pg_stat_user_tables group by 1 having sum(n_tup_ins + n_tup_upd + n_tup_del) > 0 order by 2 desc`

/** How many bytes the log of this topic has on the broker's disk. */
export async function topicBytes(kafkaData: string, topic: string): Promise<number> {
  const log = path.join(kafkaData, 'log')
  const partitions = (await readdir(log)).filter((name) => name.replace(/-\d+$/, '') === topic)
  const sizes = await Promise.all(
    partitions.map(async (partition) => {
      const segments = (await readdir(path.join(log, partition))).filter((file) => file.endsWith('.log'))
      const stats = await Promise.all(segments.map((file) => stat(path.join(log, partition, file))))
      return sum(stats.map(({ size }) => size))
    }),
  )
  return sum(sizes)
}
