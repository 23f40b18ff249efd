import type { Instant } from '../../../domain/instant.ts'
import type { Scrubbed } from '../../../domain/mask.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

/** The latest of the replays of a letter. */
export type Replay = { times: number; replayedBy: string; reason: string; at: Instant }

export const replaysOf = sql<{ letters: string[] }, Replay & { letter: string }>`
  select letter, times, replayed_by, reason, at from letter_replays where letter = any(${'letters'}::text[])`

export const keepReplays = sql<{ letters: string[]; by: string; reason: Scrubbed }>`
  insert into letter_replays (letter, replayed_by, reason)
  select letter, ${'by'}, ${'reason'} from unnest(${'letters'}::text[]) letter
  on conflict (letter) do update
  set times = letter_replays.times + 1, replayed_by = excluded.replayed_by, reason = excluded.reason, at = now()`
