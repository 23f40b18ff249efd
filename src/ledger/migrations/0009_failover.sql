-- Up Migration

-- Which server, and which of its histories, the ledger was last worked with on: one row. A standby that was promoted, and
-- a backup that was restored, go on in another timeline; another cluster has another identifier.
create table ledger_server (
  only_one boolean primary key default true check (only_one),
  system_identifier text not null,
  timeline bigint not null,
  since timestamptz not null default now()
);

-- Down Migration
drop table ledger_server;
