import type { Instant } from '../../domain/instant.ts'
import { sql } from '../../platform/postgres/postgres.ts'

/** A message that Kafka refused, without its content. `bytes`: of its value. */
export type RefusedMessage = {
  position: bigint
  topic: string
  key: string
  eventId: string
  type: string
  bytes: number
  reason: string
  refusedAt: Instant
}

/** The oldest first. */
export const refusedMessages = sql<{ limit: number }, RefusedMessage>`
  select position, topic, key, event_id, type, length(value) as bytes, reason, refused_at
  from outbox_refused order by position limit ${'limit'}`

/** A page of their positions, after the given one. */
export const refusedBehind = sql<{ after: bigint; limit: number }, { position: bigint }>`
  select position from outbox_refused where position > ${'after'} order by position limit ${'limit'}`

/** Those of these positions that exist. */
export const refusedAmong = sql<{ positions: bigint[] }, { position: bigint }>`
  select position from outbox_refused where position = any(${'positions'}::bigint[])`

export const countRefused = sql<object, { topic: string; reason: string; count: number }>`
  select topic, reason, count(*)::int as count from outbox_refused group by topic, reason order by topic, reason`

/** Hands messages to the relay once more, after those that wait there. Skips those that do not exist. */
export const putBack = sql<{ positions: bigint[] }, { position: bigint; eventId: string }>`
  with again as (
    delete from outbox_refused where position = any(${'positions'}::bigint[])
    returning position, shard, topic, key, event_id, type, value, headers, at
  ), waiting as (
    insert into outbox (shard, topic, keys, event_ids, types, contents, headers, bytes, at)
    select shard, topic, array[key], array[event_id], array[type], array[value], array[headers], octet_length(value), at
    from again order by position
  )
  select position, event_id from again order by position`
