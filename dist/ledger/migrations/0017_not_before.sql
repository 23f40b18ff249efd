-- Up Migration

-- Before when a payout must not be sent, as its command says; null: it says nothing.
alter table payout_commands add column not_before timestamptz;

-- Down Migration
alter table payout_commands drop column not_before;
