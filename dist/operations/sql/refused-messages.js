import { sql } from "../../platform/postgres.js";
/** The oldest first. */
export const refusedMessages = sql `
  select position, topic, key, event_id, type, length(value) as bytes, reason, refused_at
  from outbox_refused order by position limit ${'limit'}`;
export const countRefused = sql `
  select topic, reason, count(*)::int as count from outbox_refused group by topic, reason order by topic, reason`;
/** Hands messages to the relay once more, behind what waits there. Those that are not there are left out. */
export const putBack = sql `
  with again as (
    delete from outbox_refused where position = any(${'positions'}::bigint[])
    returning position, shard, topic, key, event_id, type, value, headers, at
  ), waiting as (
    insert into outbox (shard, topic, key, event_id, type, value, headers, at)
    select shard, topic, key, event_id, type, value, headers, at from again order by position
  )
  select position, event_id from again order by position`;
