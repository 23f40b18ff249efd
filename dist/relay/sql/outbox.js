import { sql } from "../../platform/postgres.js";
export const addShards = sql `
  insert into relay_shards (shard) select generate_series(0, ${'shards'}::int - 1) on conflict do nothing`;
/** Takes what is free and renews what is ours. A shard that a frozen relay lost comes back only by its lease. */
export const takeShards = sql `
  update relay_shards
  set owner = ${'owner'}, lease_until = now() + ${'leaseMs'} * interval '1 millisecond'
  where shard in (
    select shard from relay_shards where owner = ${'owner'} or lease_until < now() for update skip locked
  )
  returning shard`;
export const leaveShards = sql `
  update relay_shards set lease_until = '-infinity' where owner = ${'owner'}`;
/**
 * The next messages of every shard that is still ours, in the order of their positions. No horizon is
 * needed: two transactions that write about one payout are one behind the other by its row lock, so
 * whoever sees the later message sees the earlier one (docs/decisions/0002).
 */
export const nextMessages = sql `
  select o.shard, o.position, o.topic, o.key, o.event_id, o.type, o.value, o.headers, o.at
  from relay_shards r
  cross join lateral (
    select * from outbox where outbox.shard = r.shard order by position limit ${'limit'}
  ) o
  where r.owner = ${'owner'} and r.lease_until > now()`;
/** Puts a message aside that Kafka refused. It may be gone already: a successor got the same answer. */
export const setAside = sql `
  with refused as (
    delete from outbox where shard = ${'shard'} and position = ${'position'}
    returning position, shard, topic, key, event_id, type, value, headers, at
  )
  insert into outbox_refused (position, shard, topic, key, event_id, type, value, headers, at, reason)
  select position, shard, topic, key, event_id, type, value, headers, at, ${'reason'} from refused`;
/** A position is given out once, so it needs its shard only to be found. */
export const forget = sql `
  delete from outbox where shard = any(${'shards'}::smallint[]) and position = any(${'positions'}::bigint[])`;
