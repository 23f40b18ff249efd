-- Up Migration
-- Older code: works
-- No transaction

-- Every message looks up the traceparent of its payout, and most commands have none: this index says so in one step.
set lock_timeout = 0;
drop index concurrently if exists payout_commands_traced;
create index concurrently payout_commands_traced on payout_commands (merchant_id, payout_id) where traceparent is not null;
reset lock_timeout;

-- Down Migration
drop index payout_commands_traced;
