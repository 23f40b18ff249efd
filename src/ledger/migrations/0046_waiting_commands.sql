-- Up Migration

-- Commands of merchants whose locks somebody held when they were read: taken in later, in the order of position, while the
-- partition goes on without them.
create table waiting_commands (
  merchant_id text not null,
  topic text not null,
  partition integer not null,
  position bigint generated always as identity,
  log_id text,
  record_offset bigint not null,
  origin text not null,                   -- the same in one text, to which the seal is bound
  sealed bytea not null,                  -- the record as it came, sealed as a dead letter is
  at timestamptz not null default now(),
  primary key (merchant_id, topic, partition, position)
);
alter table waiting_commands alter column merchant_id set (n_distinct = 2);

-- Down Migration
drop table waiting_commands;
