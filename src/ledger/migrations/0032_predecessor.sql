-- Up Migration

-- Why another ledger may have sent payouts before this one began; null: nothing spoke for that.
alter table ledger_server add column predecessor text;

-- Down Migration
alter table ledger_server drop column predecessor;
