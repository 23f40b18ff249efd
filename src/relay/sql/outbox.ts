import { sql } from '../../platform/postgres.ts'

export type Outgoing = {
  shard: number
  position: bigint
  topic: string
  key: string
  eventId: string
  type: string
  value: Buffer
  headers: Record<string, string> | null
  at: number
}

export const addShards = sql<{ shards: number }>`
  insert into relay_shards (shard) select generate_series(0, ${'shards'}::int - 1) on conflict do nothing`

/** Takes what is free and renews what is ours. A shard that a frozen relay lost comes back only by its lease. */
export const takeShards = sql<{ owner: string; leaseMs: number }, { shard: number }>`
  update relay_shards
  set owner = ${'owner'}, lease_until = now() + ${'leaseMs'} * interval '1 millisecond'
  where shard in (
    select shard from relay_shards where owner = ${'owner'} or lease_until < now() for update skip locked
  )
  returning shard`

export const leaveShards = sql<{ owner: string }>`
  update relay_shards set lease_until = '-infinity' where owner = ${'owner'}`

/**
 * The next messages of every topic in every shard that is still ours, in the order of their positions, without those of the
 * topics `but`. Of a queue it is `limit` messages at most, and none behind the first `bytes`. No horizon is needed: two
 * transactions that write about one payout are one behind the other by its row lock, so whoever sees the later
 * message sees the earlier one (docs/decisions/0002). The length of a large value is known without reading it.
 */
export const nextMessages = sql<{ owner: string; but: string[]; limit: number; bytes: number }, Outgoing>`
  with recursive queues (shard, topic) as (
    select shard, '' from relay_shards where owner = ${'owner'} and lease_until > now()
    union all
    select q.shard, next.topic
    from queues q
    cross join lateral (
      select o.topic from outbox o
      where o.shard = q.shard and o.topic > q.topic
      order by o.shard, o.topic, o.position limit 1
    ) next
  )
  select o.shard, o.position, o.topic, o.key, o.event_id, o.type, o.value, o.headers, o.at
  from queues q
  cross join lateral (
    select waiting.*, sum(octet_length(value)) over (order by position rows unbounded preceding) as bytes
    from (
      select * from outbox
      where outbox.shard = q.shard and outbox.topic = q.topic
      order by outbox.shard, outbox.topic, outbox.position limit ${'limit'}
    ) waiting
  ) o
  where q.topic <> '' and q.topic <> all(${'but'}::text[])
    and o.bytes - octet_length(o.value) < ${'bytes'}::int`

/** Puts a message aside that Kafka refused. It may be gone already: a successor got the same answer. */
export const setAside = sql<{ shard: number; topic: string; position: bigint; reason: string }>`
  with refused as (
    delete from outbox where shard = ${'shard'} and topic = ${'topic'} and position = ${'position'}
    returning position, shard, topic, key, event_id, type, value, headers, at
  )
  insert into outbox_refused (position, shard, topic, key, event_id, type, value, headers, at, reason)
  select position, shard, topic, key, event_id, type, value, headers, at, ${'reason'} from refused`

/** A position is given out once, so it needs its shard and topic only to be found. */
export const forget = sql<{ shards: number[]; topic: string; positions: bigint[] }>`
  delete from outbox
  where shard = any(${'shards'}::smallint[]) and topic = ${'topic'} and position = any(${'positions'}::bigint[])`
