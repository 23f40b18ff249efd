import { furtherQueues } from '../../../ledger/sql/kafka/outbox-queues.ts'
import { type Fragment, sql } from '../../../platform/postgres/postgres.ts'

/** The messages of a row `o` of the outbox, in their order, with their places `n`, from 1. */
export const messagesIn: Fragment = {
  fragment: `unnest(o.keys, o.event_ids, o.types, o.contents, o.headers)
    with ordinality as m (key, event_id, type, value, headers, n)`,
}

/** `n`: the message's place, from 1, in the row at `position`. */
export type Outgoing = {
  shard: number
  position: bigint
  n: bigint
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

/** The last position given out, or 0; null: this role may not read it. Run it before `takeShards`. */
export const lastPosition = sql<object, { last: bigint | null }>`
  select case when has_sequence_privilege(name, 'select')
    then coalesce(pg_sequence_last_value(name::regclass), 0) end as last
  from pg_get_serial_sequence('outbox', 'position') name`

/**
 * Takes shards that were free for `freeForMs`, and renews ours. A relay that was frozen gets a shard that it lost back only when
 * the lease ends. A lease that lasts longer than any relay sets is from a clock that was set back since, so the shard counts as
 * free.
 *
 * Also moves the marks. `next_below` is the first position that waits in the shard, or else the one after `last`. A transaction
 * with an earlier position that was still invisible had an xid below `next_xid`, which is this statement's own xid;
 * `pg_snapshot_xmax` would not do, because transactions under way that began after the last one to end are not below it. Once
 * none of those is under way (`pg_snapshot_xmin`), everything that they wrote is visible, to this statement as well, so nothing
 * appears below `next_below` any more. A mere snapshot, such as that of a dump, does not count as under way.
 *
 * A mark holds only for the positions that it was made from. Positions may start again, as in a copy of the tables without their
 * sequences, and may be past the mark again by then: a relay that takes a shard that it did not have begins without a mark.
 */
export const takeShards = sql<
  { owner: string; leaseMs: number; freeForMs: number; last: bigint | null },
  { shard: number }
>`
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
    where (owner = ${'owner'} and lease_until > now())
      or lease_until <= now() - ${'freeForMs'} * interval '1 millisecond'
      or lease_until > now() + 2 * ${'leaseMs'} * interval '1 millisecond'
    for update skip locked
  )
  returning s.shard`

export const leaveShards = sql<{ owner: string }>`
  update relay_shards set lease_until = now() where owner = ${'owner'} and lease_until > now()`

/**
 * The next messages of every topic in every shard that is still ours, in the order of their positions, without the topics
 * `but`. Returns those of at most `limit` rows of a queue, and of none after the first `bytes`. It needs no horizon: the row lock of a
 * payout puts transactions that write about it one after the other, so a reader that sees the later message sees the earlier one
 * (docs/decisions/0002).
 */
export const nextMessages = sql<{ owner: string; but: string[]; limit: number; bytes: number }, Outgoing>`
  with recursive queues (shard, topic, done_below) as (
    select shard, '', done_below from relay_shards where owner = ${'owner'} and lease_until > now()
    union all
    ${furtherQueues}
  )
  select o.shard, o.position, m.n, o.topic, m.key, m.event_id, m.type, m.value, m.headers, o.at
  from queues q
  cross join lateral (
    select waiting.*, sum(bytes) over (order by position rows unbounded preceding) as sum
    from (
      select * from outbox
      where outbox.shard = q.shard and outbox.topic = q.topic and outbox.position >= q.done_below
      order by outbox.shard, outbox.topic, outbox.position limit ${'limit'}
    ) waiting
  ) o
  cross join lateral ${messagesIn}
  where q.topic <> '' and q.topic <> all(${'but'}::text[]) and o.sum - o.bytes < ${'bytes'}::int`

/** `eventIds`: those of all messages of the row, in their order, with a comma between them. */
export type OutboxPlace = { shard: number; position: bigint; eventIds: string }
type OutboxRows = { topic: string; read: readonly OutboxPlace[] }

/**
 * The places of rows that were read. Compares all event ids, too: a server that took over meanwhile without these messages has given
 * their positions to others, which may begin with the same ones.
 */
const placesOf = sql<OutboxRows>`
  select found.place
  from ${{ rows: 'read', columns: { shard: 'smallint', position: 'bigint', eventIds: 'text' } }} read
  cross join lateral (
    select ctid as place from outbox o
    where o.shard = read.shard and o.topic = ${'topic'} and o.position = read.position
      and array_to_string(o.event_ids, ',') = read.event_ids
    offset 0
  ) found`

/**
 * Puts aside the messages that Kafka refused, of rows whose others it has taken. Some may be gone already, if a successor got the
 * same answer.
 */
export const setAside = sql<
  OutboxRows & { refused: readonly { position: bigint; n: bigint; reason: string }[] }
>`
  with o as (
    delete from outbox where ctid = any (array(${placesOf}))
    returning *
  )
  insert into outbox_refused (shard, topic, key, event_id, type, value, headers, at, reason)
  select o.shard, o.topic, m.key, m.event_id, m.type, m.value, m.headers, o.at, refused.reason
  from o
  cross join lateral ${messagesIn}
  join ${{ rows: 'refused', columns: { position: 'bigint', n: 'bigint', reason: 'text' } }} refused
    on refused.position = o.position and refused.n = m.n
  order by o.position, m.n`

export const deletePublished = sql<OutboxRows>`delete from outbox where ctid = any (array(${placesOf}))`
