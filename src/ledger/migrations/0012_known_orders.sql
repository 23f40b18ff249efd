-- Up Migration
-- No transaction

-- Each waits for whoever works at that moment.
set lock_timeout = 0;

-- Find an order that is known to exist at an account. No entry is made before the gateway has the order.
drop index concurrently if exists payouts_known;
create index concurrently payouts_known on payouts (merchant_id, account_id)
  where account_id is not null and agentpay_order_id is not null;
drop index concurrently if exists payins_known;
create index concurrently payins_known on payins (merchant_id, account_id)
  where account_id is not null and pay_order_id is not null;
reset lock_timeout;

-- Down Migration
drop index payins_known;
drop index payouts_known;
