-- Up Migration
-- Older code: works

-- When a recovery last found that the ledger lacked something, of whatever merchant.
alter table ledger_server add column loss_found timestamptz;

-- Down Migration
alter table ledger_server drop column loss_found;
