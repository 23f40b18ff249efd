-- Up Migration
-- Older code: works

-- Below done_below nothing of a shard waits, and nothing will: the relay reads from there on, and not past all that was deleted
-- while somebody kept a snapshot. next_below takes its place once every transaction has ended that began before next_xid.
alter table relay_shards
  add column done_below bigint not null default 0,
  add column next_below bigint,
  add column next_xid xid8;

-- Down Migration
alter table relay_shards drop column next_xid, drop column next_below, drop column done_below;
