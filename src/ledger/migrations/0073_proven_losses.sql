-- Up Migration
-- Older code: works

-- What proves that the ledger was set back, stored with its evidence, until every merchant is fenced for it. While there is any, no
-- claim takes anything.
create table proven_losses (
  position bigint generated always as identity primary key,
  reason text not null
);

-- Down Migration
drop table proven_losses;
