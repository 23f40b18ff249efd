-- Up Migration
-- No transaction

-- It waits for whoever works at that moment.
set lock_timeout = 0;

-- A person finds a payout by what the gateway calls it: through all of ten million it took 15 s. No update that did not
-- move its row to another page before does so now: none changes this column and no other that is in an index.
drop index concurrently if exists payouts_agentpay;
create index concurrently payouts_agentpay on payouts (merchant_id, agentpay_order_id)
  where agentpay_order_id is not null;
reset lock_timeout;

-- Down Migration
drop index payouts_agentpay;
