import { readdirSync, readFileSync } from 'node:fs'
import { topicNames } from '../../src/messages/topics.ts'
import { connectAdmin } from '../../src/platform/kafka/admin.ts'
import type { Logger } from '../../src/platform/log.ts'
import { sql } from '../../src/platform/postgres/postgres.ts'
import type { Proc } from '../world/proc.ts'
import type { World } from '../world/world.ts'

/** The resource use of a running installation at one moment. */
export type Sample = {
  /** Since the beginning. */
  atMs: number
  /** Requested since the beginning. */
  payouts: number
  /** Connections cut, processes stopped and the like since the beginning. */
  troubles: number
  /** By process that ran. */
  processes: Record<string, { rssMb: number; handles: number } | undefined>
  /** Of all processes together. */
  connections: number
  tablesMb: number
  liveRows: number
  deadRows: number
  outbox: number
  /** Commands published but not stored yet. */
  lag: number
}

export async function takeSample(
  { db, config }: World,
  procs: Readonly<Record<string, Proc>>,
  log: Logger,
): Promise<Omit<Sample, 'atMs' | 'payouts' | 'troubles'>> {
  const { commands } = topicNames(config.topicPrefix)
  const [row] = await db.run(used, { topic: commands })
  if (!row) throw new Error('Postgres tells nothing about itself')
  const { takenIn, ...counts } = row
  const admin = await connectAdmin(config.kafka, log)
  const ranges = await admin.ranges(commands).finally(() => admin.close())
  const published = ranges.reduce((sum, { high }) => sum + high, 0n)
  const numbers = Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, Number(count)]))
  const { connections = 0, tableBytes = 0, liveRows = 0, deadRows = 0, outbox = 0 } = numbers
  return {
    processes: Object.fromEntries(Object.entries(procs).map(([name, { pid }]) => [name, usedBy(pid)])),
    ...{ connections, tablesMb: Math.round(tableBytes / MB), liveRows, deadRows, outbox },
    lag: Number(published - takenIn),
  }
}

const MB = 2 ** 20

const used = sql<
  { topic: string },
  Record<'connections' | 'tableBytes' | 'liveRows' | 'deadRows' | 'outbox' | 'takenIn', bigint>
>`
  select
    (select count(*) from pg_stat_activity
     where datname = current_database() and application_name = 'payoutd') as connections,
    (select coalesce(sum(pg_total_relation_size(relid)), 0)::bigint from pg_stat_user_tables) as table_bytes,
    (select coalesce(sum(n_live_tup), 0)::bigint from pg_stat_user_tables) as live_rows,
    (select coalesce(sum(n_dead_tup), 0)::bigint from pg_stat_user_tables) as dead_rows,
    (select coalesce(sum(cardinality(keys)), 0) from outbox) as outbox,
    (select coalesce(sum(next_offset), 0)::bigint from intake_offsets where topic = ${'topic'}) as taken_in`

/** Undefined: it has ended meanwhile. */
function usedBy(pid: number): { rssMb: number; handles: number } | undefined {
  try {
    const [, kb] = /^VmRSS:\s*(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    if (kb === undefined) return undefined
    return { rssMb: Math.round(Number(kb) / 1024), handles: readdirSync(`/proc/${pid}/fd`).length }
  } catch {
    return undefined
  }
}

/** The minimum of the first and of the last quarter: bursts pass, but a leak does not come back. */
type Trend = { what: string; first: number; last: number; bound: number }

/** A process that kept only each payout's id in a set would need 100 bytes for it; half of that … */
const MB_PER_PAYOUT = 50 / MB
/**
 * … beyond what a heap grows by until it has found its size: 180 MB at the start, 310 MB at top speed
 * (bench/results).
 */
const YOUNG_MB = 130
/** Every fault ends a connection or a process; a quarter of one leak per fault is enough to notice … */
const PER_TROUBLE = 1 / 4
/** … beyond the pools, full or not: 64 connections to the gateway, 8 to Postgres. */
const POOLS = 64 + 8
/** The most that two processes use. */
const CONNECTIONS = 16
/** Less than a second's messages: at some moment in each quarter the relay had almost caught up. */
const OUTBOX = 1_000

/** Trends of memory, handles, connections and outbox, from at least four samples. */
export function trendsOf(samples: readonly Sample[], processes: readonly string[]): Trend[] {
  const quarter = Math.floor(samples.length / 4)
  const [early, late] = [samples.slice(0, quarter), samples.slice(-quarter)]
  const between = (of: (sample: Sample) => number) => of(late.at(-1) as Sample) - of(early[0] as Sample)
  const trend = (what: string, of: (sample: Sample) => number | undefined, bound: number): Trend => {
    const least = (some: readonly Sample[]) =>
      Math.min(...some.map(of).filter((value) => value !== undefined))
    return { what, first: least(early), last: least(late), bound: Math.round(bound) }
  }
  const memory = YOUNG_MB + between(({ payouts }) => payouts) * MB_PER_PAYOUT
  const handles = POOLS + between(({ troubles }) => troubles) * PER_TROUBLE
  return [
    ...processes.flatMap((name) => [
      trend(`MB of ${name}`, (sample) => sample.processes[name]?.rssMb, memory),
      trend(`handles of ${name}`, (sample) => sample.processes[name]?.handles, handles),
    ]),
    trend('connections to Postgres', ({ connections }) => connections, CONNECTIONS),
    trend('messages in the outbox', ({ outbox }) => outbox, OUTBOX),
  ]
}

/** What grew by more than allowed, as text. */
export const growing = (trends: readonly Trend[]): string[] =>
  trends
    .filter(({ first, last, bound }) => !(last - first <= bound))
    .map(({ what, first, last, bound }) => `grows: ${what} from ${first} to ${last}, by more than ${bound}`)

export const inWords = (trends: readonly Trend[]): string =>
  trends.map(({ what, first, last }) => `${what} ${first} → ${last}`).join(', ')
