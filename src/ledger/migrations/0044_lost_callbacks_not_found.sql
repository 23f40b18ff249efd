-- Up Migration

-- How often the gateway said that it has no such order, since a callback of it was lost last.
alter table lost_callbacks add column not_found integer not null default 0;

-- Down Migration
alter table lost_callbacks drop column not_found;
