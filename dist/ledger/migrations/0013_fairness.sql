-- Up Migration

-- What time alone moves: everything that is open at the time that it is due, except that what the gateway is to be
-- asked about only has its deadline. By merchant, so that each gets its turn however much is due of another.
create index payouts_timers on payouts
  (merchant_id, (case when state in ('unknown', 'processing') then deadline else due_at end))
  where due_at is not null;
-- What the gateway is to be asked about, by merchant: each has queries of its own.
create index payouts_to_ask on payouts (merchant_id, due_at)
  where due_at is not null and state in ('unknown', 'processing');
-- The first of these two finds whatever is open as well.
drop index payouts_due;

create index payins_leases on payins (due_at) where due_at is not null and state = 'creating';
create index payins_to_ask on payins (merchant_id, due_at) where due_at is not null and state <> 'creating';
drop index payins_due;

-- Down Migration
create index payins_due on payins (due_at) where due_at is not null;
drop index payins_to_ask;
drop index payins_leases;
create index payouts_due on payouts (due_at) where due_at is not null;
drop index payouts_to_ask;
drop index payouts_timers;
