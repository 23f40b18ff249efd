-- Up Migration

-- A keyed hash over all that a command asks for, where the fingerprint has who gets how much alone. Null: taken in before
-- this was kept.
alter table payout_commands add column content bytea;

-- Down Migration
alter table payout_commands drop column content;
