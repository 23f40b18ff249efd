-- Up Migration

-- A hash over evidence that moved nothing, by which the same is found again. Null: it moved something, or was told before
-- this was kept.
alter table history add column said bytea;

-- Down Migration
alter table history drop column said;
