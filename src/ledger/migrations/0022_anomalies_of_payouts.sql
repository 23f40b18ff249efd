-- Up Migration
-- No transaction

-- It waits for whoever works at that moment.
set lock_timeout = 0;

-- Those about no payout are found by their order; an index that holds them all as well was taken for that, now and then.
drop index concurrently if exists anomalies_of_payout;
create index concurrently anomalies_of_payout on anomalies (merchant_id, payout_id) where payout_id is not null;
drop index concurrently if exists anomalies_payout;
reset lock_timeout;

-- Down Migration
create index anomalies_payout on anomalies (merchant_id, payout_id);
drop index anomalies_of_payout;
