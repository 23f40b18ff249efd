import { sql } from "../../../platform/postgres.js";
/** How many of the dead letters that the topic holds were replayed. */
export const replayedOf = sql `
  select count(*)::int as count
  from unnest(${'partitions'}::int[], ${'lows'}::bigint[], ${'highs'}::bigint[]) as held (partition, low, high)
  join dlq_replays r on r.topic = ${'topic'} and r.partition = held.partition
    and r.position >= held.low and r.position < held.high`;
