-- Up Migration

-- 64 bits of a hash of the file that it came in: the same payment in another file of its batch, or in the same row under
-- another reference, is held. Null: it came in none, or before this was kept.
alter table payout_commands add column file bigint;

-- Down Migration
alter table payout_commands drop column file;
