-- Up Migration

-- When `payoutd recover` was first called since the merchant was fenced, or since the ledger was last found to lack
-- something: by then whoever runs it has stopped the former server, and nothing more is sent from there once leases are over.
alter table merchants add column recovery_began timestamptz;

-- Down Migration
alter table merchants drop column recovery_began;
