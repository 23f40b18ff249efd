import { standings } from '../ledger/sql/standings.ts'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/kafka/places.ts'
import { pause } from '../platform/lifecycle.ts'
import type { Database } from '../platform/postgres.ts'

/** What a partition of commands held when the recovery began: from `low` up to, and without, `high`. */
export type PartitionEnd = Log & { partition: number }

export type CatchUpDeps = {
  db: Database
  clock: Clock
  signal: AbortSignal
  /** How many messages are still to be taken in. */
  onBehind: (behind: bigint) => void
}

/** `stuck`: nothing was taken in for a minute. */
export type CaughtUp = { kind: 'caught-up' | 'interrupted' } | { kind: 'stuck'; behind: bigint }

const STUCK_MS = 60_000
const LOOK_EVERY_MS = 500

/** Waits until intake, which runs in other processes, has taken in everything that the commands' topic held. */
export async function untilCaughtUp(
  topic: string,
  ends: readonly PartitionEnd[],
  { db, clock, signal, onBehind }: CatchUpDeps,
): Promise<CaughtUp> {
  let before: bigint | undefined
  let movedAt = clock.monotonic()
  while (!signal.aborted) {
    const behind = await howFarBehind(topic, ends, db)
    if (behind === 0n) return { kind: 'caught-up' }
    if (behind !== before) {
      onBehind(behind)
      movedAt = clock.monotonic()
    }
    if (clock.monotonic() - movedAt > STUCK_MS) return { kind: 'stuck', behind }
    before = behind
    await pause(LOOK_EVERY_MS, signal)
  }
  return { kind: 'interrupted' }
}

/** Messages that intake has not taken in: what Kafka has dropped by now, it never will. */
export async function howFarBehind(
  topic: string,
  ends: readonly PartitionEnd[],
  db: Database,
): Promise<bigint> {
  const stored = new Map(
    (await db.run(standings, { topic })).map((standing) => [standing.partition, standing]),
  )
  return ends.reduce((behind, { partition, id, low, high }) => {
    const standing = stored.get(partition)
    // An offset in another log says nothing of this one.
    const next = standing && (id === null || standing.logId === id) ? standing.offset : low
    const from = next > low ? next : low
    return behind + (high > from ? high - from : 0n)
  }, 0n)
}
