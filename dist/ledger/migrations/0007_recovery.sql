-- Up Migration

-- Since when a merchant is fenced after its database was restored, and who did it: nothing of it is sent, and nothing
-- that was never sent ends, until every open order has been asked about.
alter table merchants
  add column recovering_since timestamptz,
  add column recovering_by text,
  add column recovering_reason text,
  add constraint merchants_recovering
    check (num_nulls(recovering_since, recovering_by, recovering_reason) in (0, 3));

-- What a recovery has to ask about. Its rows go when the fence does.
create table recovered_payouts (
  merchant_id text not null,
  payout_id text not null,
  sent boolean not null default false,    -- it was published that it was sent, and not that it was not
  absences integer not null default 0,    -- "not found" in a row that counted
  found text,                             -- what it came to (src/recovery/sql/list.ts); null: still to be asked
  primary key (merchant_id, payout_id)
);

-- Down Migration
drop table recovered_payouts;
alter table merchants
  drop constraint merchants_recovering,
  drop column recovering_since, drop column recovering_by, drop column recovering_reason;
