-- Up Migration

-- It failed without the gateway's own report that its order did: a person, a refusal or absence says so.
alter table payouts add column unreported boolean not null default false;

-- Down Migration
alter table payouts drop column unreported;
