-- Up Migration
-- No transaction

-- It waits for whoever works at that moment.
set lock_timeout = 0;

-- Of each merchant by itself: what somebody holds of one hides what another waits for.
drop index concurrently if exists payins_leases_of_merchants;
create index concurrently payins_leases_of_merchants on payins (merchant_id, due_at)
  where due_at is not null and state = 'creating';
drop index concurrently if exists payins_leases;
reset lock_timeout;

-- Down Migration
create index payins_leases on payins (due_at) where due_at is not null and state = 'creating';
drop index payins_leases_of_merchants;
