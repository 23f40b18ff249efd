-- Up Migration
-- No transaction

-- It waits for whoever works at that moment.
set lock_timeout = 0;

-- Nothing looks for what is to be cancelled by its reason any more: payouts_cancel_request has it.
drop index concurrently if exists payouts_cancel_requested;
reset lock_timeout;

-- Down Migration
create index payouts_cancel_requested on payouts (merchant_id, payout_id) where reason = 'cancel-requested';
