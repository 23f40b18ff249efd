-- Up Migration

-- What the ledger had when the gateway answered: both sides of a report are of one moment. Null: answered before this was kept.
alter table reconciled_payouts add column here_state text, add column here_fee bigint;

-- Its balance is of some moment from started_at to then. Null: a run of before this was kept, asked for just before started_at.
alter table reconciliations add column told_at timestamptz;

-- Down Migration
alter table reconciliations drop column told_at;
alter table reconciled_payouts drop column here_state, drop column here_fee;
