-- Up Migration
-- Older code: works

-- With fee_estimate, what the fee of a payout is taken to be at most: millionths of its amount. Null: no answer told it yet.
alter table merchants add column fee_share bigint;

-- Down Migration
alter table merchants drop column fee_share;
