import type { Fragment } from '../src/platform/postgres/postgres.ts'
import { messagesIn } from '../src/stages/relay/sql/outbox.ts'

/** All messages of the outbox; their order is by position and n. */
export const outboxMessages: Fragment = {
  fragment: `(
    select o.shard, o.topic, o.position, o.at, m.* from outbox o cross join lateral ${messagesIn.fragment}
  ) outbox_messages`,
}
