-- Up Migration

-- Messages that Kafka has refused, each by itself, and would refuse again; a person has the relay try one once more.
create table outbox_refused (
  position bigint primary key,            -- where it stood in the outbox
  shard smallint not null,
  topic text not null,
  key text not null,
  event_id uuid not null,
  type text not null,
  value bytea not null,
  headers jsonb,
  at timestamptz not null,                -- when it was put into the outbox
  reason text not null,                   -- Kafka's name for the error
  refused_at timestamptz not null default now()
);

-- Down Migration
drop table outbox_refused;
