import type { Fragment } from '../../../platform/postgres/postgres.ts'

/**
 * The recursive part of `queues (shard, topic, done_below)`: the next topic of each shard that has a waiting message. It takes
 * one index step per topic, however many messages wait.
 */
export const furtherQueues: Fragment = {
  fragment: `
    select q.shard, next.topic, q.done_below
    from queues q
    cross join lateral (
      select o.topic from outbox o
      where o.shard = q.shard and o.topic > q.topic and o.position >= q.done_below
      order by o.shard, o.topic, o.position limit 1
    ) next`,
}
