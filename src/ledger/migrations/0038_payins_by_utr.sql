-- Up Migration
-- No transaction

-- It waits for whoever works at that moment.
set lock_timeout = 0;

-- Whose UTR it is: nobody calls two payins paid by one transfer.
drop index concurrently if exists payins_utr;
create index concurrently payins_utr on payins (upper(utr)) where utr is not null;
reset lock_timeout;

-- Down Migration
drop index payins_utr;
