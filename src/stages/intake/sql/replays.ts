import type { Instant } from '../../../domain/instant.ts'
import type { Scrubbed } from '../../../domain/mask.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

export type Replay = {
  partition: number
  position: bigint
  times: number
  replayedBy: string
  reason: string
  at: Instant
}

/** `topic`: the log that holds, or held, the letters; older rows, without the id, have only the topic's name. */
export const replaysOf = sql<{ topic: string }, Replay>`
  select partition, position, times, replayed_by, reason, at from dlq_replays where topic = ${'topic'}`

type Replayed = { topic: string; partition: number; position: bigint }

export const keepReplays = sql<{ replayed: readonly Replayed[]; by: string; reason: Scrubbed }>`
  insert into dlq_replays (topic, partition, position, replayed_by, reason)
  select topic, partition, position, ${'by'}, ${'reason'}
  from ${{ rows: 'replayed', columns: { topic: 'text', partition: 'int', position: 'bigint' } }} replayed
  on conflict (topic, partition, position) do update
  set times = dlq_replays.times + 1, replayed_by = excluded.replayed_by, reason = excluded.reason, at = now()`
