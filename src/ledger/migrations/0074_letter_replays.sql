-- Up Migration
-- Older code: does not work

-- Dead letters that were published again as commands. `letter`: what was sealed, as SHA-256 in hexadecimal, because a position is
-- given to another letter once Kafka has lost the end of its log. Letters that were replayed before count as not replayed: intake
-- finds their commands repeated.
create table letter_replays (
  letter text primary key,
  times integer not null default 1,
  replayed_by text not null,              -- of the latest time, as the next two
  reason text not null,
  at timestamptz not null default now()
);
drop table dlq_replays;
update compatibility set oldest = '0074_letter_replays';

-- Down Migration
update compatibility set oldest = '0071_what_was_sent';
create table dlq_replays (
  topic text not null,
  partition integer not null,
  position bigint not null,
  times integer not null default 1,
  replayed_by text not null,
  reason text not null,
  at timestamptz not null default now(),
  primary key (topic, partition, position)
);
drop table letter_replays;
