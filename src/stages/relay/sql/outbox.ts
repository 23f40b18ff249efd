import { furtherQueues } from '../../../ledger/sql/outbox-queues.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

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

/** The latest position that was given out, or 0; null: this role may not see it. To be asked before `takeShards`. */
export const lastPosition = sql<object, { last: bigint | null }>`
  select case when has_sequence_privilege(name, 'select')
    then coalesce(pg_sequence_last_value(name::regclass), 0) end as last
  from pg_get_serial_sequence('outbox', 'position') name`

/**
 * Takes what is free and renews what is ours. A shard that a frozen relay lost comes back only by its lease. One that is to
 * last for longer than any was taken by a clock that has been put back since.
 *
 * It moves the marks, too: `next_below` is the first position that waits in the shard, or else the one behind `last`, and
 * whoever had a position before that, and could not be seen, had an xid before `next_xid`, which is this statement's own: what
 * a snapshot ends at (`pg_snapshot_xmax`) is below those that are under way and began after the last that has ended. Once
 * none of them is under way (`pg_snapshot_xmin`), all that they wrote is seen, by this very statement as well, and so nothing comes
 * below it any more. A snapshot alone, such as that of a dump, is under way in none of this.
 *
 * A mark holds for the positions that it was made of. Those may be given out anew, as in a copy of the tables without their
 * sequences, and may by then be past the mark again: whoever takes a shard that it did not have begins without one.
 */
export const takeShards = sql<{ owner: string; leaseMs: number; last: bigint | null }, { shard: number }>`
  with recursive queues (shard, topic, done_below) as (
    select shard, '', done_below from relay_shards
    union all
    ${furtherQueues}
  ), lowest as (
    select q.shard,
      least(min(first.position), ${'last'}::bigint + 1,
        case when ${'last'}::bigint is not null then
          pg_sequence_last_value(pg_get_serial_sequence('outbox', 'position')::regclass) + 1
        end) as position
    from queues q
    left join lateral (
      select position from outbox
      where outbox.shard = q.shard and outbox.topic = q.topic and outbox.position >= q.done_below
      order by outbox.shard, outbox.topic, outbox.position limit 1
    ) first on true
    group by q.shard
  )
  update relay_shards s
  set owner = ${'owner'}, lease_until = now() + ${'leaseMs'} * interval '1 millisecond',
      done_below = case when mark.is_void then 0
        else least(case when mark.is_settled then mark.next_below else mark.done_below end, mark.position) end,
      next_below = case when mark.is_new then mark.position else mark.next_below end,
      next_xid = case when mark.is_new then pg_current_xact_id() else mark.next_xid end
  from (
    select settled.*, is_void or is_settled or next_below is null
      or next_xid > pg_snapshot_xmax(pg_current_snapshot()) as is_new
    from (
      select r.shard, r.done_below, r.next_below, r.next_xid, lowest.position,
        r.owner is distinct from ${'owner'}
          or coalesce(${'last'}::bigint + 1 < greatest(r.done_below, r.next_below), false) as is_void,
        coalesce(r.next_below is not null and r.next_xid <= pg_snapshot_xmin(pg_current_snapshot()), false) as is_settled
      from relay_shards r join lowest on lowest.shard = r.shard
    ) settled
  ) mark
  where mark.shard = s.shard and s.shard in (
    select shard from relay_shards
    where owner = ${'owner'} or lease_until < now()
      or lease_until > now() + 2 * ${'leaseMs'} * interval '1 millisecond'
    for update skip locked
  )
  returning s.shard`

export const leaveShards = sql<{ owner: string }>`
  update relay_shards set lease_until = '-infinity' where owner = ${'owner'}`

/**
 * The next messages of every topic in every shard that is still ours, in the order of their positions, without those of the
 * topics `but`. Of a queue it is `limit` messages at most, and none behind the first `bytes`. No horizon is needed: two
 * transactions that write about one payout are one behind the other by its row lock, so whoever sees the later
 * message sees the earlier one (docs/decisions/0002). The length of a large value is known without reading it.
 */
export const nextMessages = sql<{ owner: string; but: string[]; limit: number; bytes: number }, Outgoing>`
  with recursive queues (shard, topic, done_below) as (
    select shard, '', done_below from relay_shards where owner = ${'owner'} and lease_until > now()
    union all
    ${furtherQueues}
  )
  select o.shard, o.position, o.topic, o.key, o.event_id, o.type, o.value, o.headers, o.at
  from queues q
  cross join lateral (
    select waiting.*, sum(octet_length(value)) over (order by position rows unbounded preceding) as bytes
    from (
      select * from outbox
      where outbox.shard = q.shard and outbox.topic = q.topic and outbox.position >= q.done_below
      order by outbox.shard, outbox.topic, outbox.position limit ${'limit'}
    ) waiting
  ) o
  where q.topic <> '' and q.topic <> all(${'but'}::text[])
    and o.bytes - octet_length(o.value) < ${'bytes'}::int`

type OutboxMessage = { shards: number[]; topic: string; positions: bigint[]; eventIds: string[] }

/**
 * Where messages stand that were read. By their event ids too: where another server has taken over meanwhile, which lacks
 * them, it gave their positions to others.
 */
const placesOf = sql<OutboxMessage>`
  select found.place
  from unnest(${'shards'}::smallint[], ${'positions'}::bigint[], ${'eventIds'}::uuid[]) as read (shard, position, event_id)
  cross join lateral (
    select ctid as place from outbox o
    where o.shard = read.shard and o.topic = ${'topic'} and o.position = read.position and o.event_id = read.event_id
    offset 0
  ) found`

/** Puts messages aside that Kafka refused. Some may be gone already: a successor got the same answer. */
export const setAside = sql<OutboxMessage & { reasons: string[] }>`
  with refused as (
    delete from outbox where ctid = any (array(${placesOf}))
    returning position, shard, topic, key, event_id, type, value, headers, at
  )
  insert into outbox_refused (position, shard, topic, key, event_id, type, value, headers, at, reason)
  select position, shard, topic, key, event_id, type, value, headers, at, reason
  from refused join unnest(${'positions'}::bigint[], ${'reasons'}::text[]) as why (position, reason) using (position)`

export const deletePublished = sql<OutboxMessage>`delete from outbox where ctid = any (array(${placesOf}))`
