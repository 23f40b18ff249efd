-- Up Migration
-- No transaction

-- It waits for whoever works at that moment.
set lock_timeout = 0;

-- What is to be cancelled once a recovery has ended. In its condition is one column more than in other indexes, which
-- changes with a request to cancel alone.
drop index concurrently if exists payouts_cancel_request;
create index concurrently payouts_cancel_request on payouts (merchant_id, payout_id)
  where cancel_request is not null and due_at is not null;
reset lock_timeout;

-- Down Migration
drop index payouts_cancel_request;
