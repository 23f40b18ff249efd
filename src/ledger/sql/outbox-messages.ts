import type { Fragment } from '../../platform/postgres/postgres.ts'

/** The messages of a row `o` of the outbox, in their order, with their places `n`, from 1. */
export const messagesIn: Fragment = {
  fragment: `unnest(o.keys, o.event_ids, o.types, o.contents, o.headers)
    with ordinality as m (key, event_id, type, value, headers, n)`,
}

/** All messages of the outbox; their order is by position and n. */
export const outboxMessages: Fragment = {
  fragment: `(
    select o.shard, o.topic, o.position, o.at, m.* from outbox o cross join lateral ${messagesIn.fragment}
  ) outbox_messages`,
}
