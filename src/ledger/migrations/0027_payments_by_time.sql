-- Up Migration
-- No transaction

-- It waits for whoever works at that moment.
set lock_timeout = 0;

-- What pays the same in a pay period, however many there are in others.
drop index concurrently if exists payments_by_time;
create index concurrently payments_by_time
  on payments (merchant_id, beneficiary_hash, amount, pays_at, batch, payout_id);
reset lock_timeout;

-- Down Migration
drop index payments_by_time;
