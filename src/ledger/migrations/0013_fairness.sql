-- Up Migration
-- No transaction

-- Each waits for whoever works at that moment.
set lock_timeout = 0;

-- What time alone moves: everything that is open at the time that it is due, except that what the gateway is to be
-- asked about only has its deadline. By merchant, so that each gets its turn however much is due of another.
drop index concurrently if exists payouts_timers;
create index concurrently payouts_timers on payouts
  (merchant_id, (case when state in ('unknown', 'processing') then deadline else due_at end))
  where due_at is not null;
-- What the gateway is to be asked about, by merchant: each has queries of its own.
drop index concurrently if exists payouts_to_ask;
create index concurrently payouts_to_ask on payouts (merchant_id, due_at)
  where due_at is not null and state in ('unknown', 'processing');
-- The first of these two finds whatever is open as well.
drop index concurrently if exists payouts_due;

drop index concurrently if exists payins_leases;
create index concurrently payins_leases on payins (due_at) where due_at is not null and state = 'creating';
drop index concurrently if exists payins_to_ask;
create index concurrently payins_to_ask on payins (merchant_id, due_at) where due_at is not null and state <> 'creating';
drop index concurrently if exists payins_due;
reset lock_timeout;

-- The next payout of a merchant where the balance does not cover it, and since when. It may have moved since.
alter table merchants
  add column short_payout_id text,
  add column short_since timestamptz;

-- Down Migration
alter table merchants drop column short_payout_id, drop column short_since;
create index payins_due on payins (due_at) where due_at is not null;
drop index payins_to_ask;
drop index payins_leases;
create index payouts_due on payouts (due_at) where due_at is not null;
drop index payouts_to_ask;
drop index payouts_timers;
