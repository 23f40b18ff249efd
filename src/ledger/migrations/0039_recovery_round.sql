-- Up Migration

-- How often the ledger was found to have lost something while a recovery was under way: an answer of the gateway that was
-- had before counts no more, as what it was about may have been sent since.
alter table merchants add column recovery_round integer not null default 0;
alter table recovered_payouts add column round integer not null default 0;

-- Down Migration
alter table recovered_payouts drop column round;
alter table merchants drop column recovery_round;
