-- Up Migration

-- Which payoutd works on these tables: one that has this migration, or a later one (docs/decisions). A migration after
-- which older code no longer works sets it to its own name.
create table compatibility (oldest text not null);
create unique index compatibility_one on compatibility ((true));
insert into compatibility values ('0016_compatibility');

-- It acts as its owner: whoever runs payoutd is given it (src/ledger/grants.ts), and nobody else.
revoke execute on function keep_history(integer) from public;

-- Down Migration
grant execute on function keep_history(integer) to public;
drop table compatibility;
