-- Up Migration
-- Older code: works

-- Who asked for a cancellation that came before its payout: a message, or a person.
alter table early_cancels add column source text not null default 'COMMAND';

-- Down Migration
alter table early_cancels drop column source;
