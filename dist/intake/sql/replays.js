import { sql } from "../../platform/postgres.js";
export const replaysOf = sql `
  select partition, position, times, replayed_by, reason, at from dlq_replays where topic = ${'topic'}`;
export const keepReplays = sql `
  insert into dlq_replays (topic, partition, position, replayed_by, reason)
  select ${'topic'}, partition, position, ${'by'}, ${'reason'}
  from unnest(${'partitions'}::int[], ${'positions'}::bigint[]) as replayed (partition, position)
  on conflict (topic, partition, position) do update
  set times = dlq_replays.times + 1, replayed_by = excluded.replayed_by, reason = excluded.reason, at = now()`;
