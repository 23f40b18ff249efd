-- Up Migration
-- No transaction

-- It waits for whoever works at that moment.
set lock_timeout = 0;

-- What has not ended, by key: what a recovery lists and a person is shown. Made of columns that are in other indexes
-- already, so that no more updates leave their page (docs/decisions/0004). The condition is one that follows from no
-- other, so that no statement about a part of it takes this index (docs/decisions/0005).
drop index concurrently if exists payouts_open;
create index concurrently payouts_open on payouts (merchant_id, payout_id) 
  where coalesce(due_at is not null or in_review, false);
-- Whose UTR it is: stored with the end, when due_at changes anyway.
drop index concurrently if exists payouts_utr;
create index concurrently payouts_utr on payouts (upper(utr)) where utr is not null;
-- What is to be cancelled once a recovery has ended. The reason changes with the state only.
drop index concurrently if exists payouts_cancel_requested;
create index concurrently payouts_cancel_requested on payouts (merchant_id, payout_id)
  where reason = 'cancel-requested';
reset lock_timeout;

-- Down Migration
drop index payouts_cancel_requested;
drop index payouts_utr;
drop index payouts_open;
