-- Up Migration

-- Collections. What the payer told about himself is in no column: it goes to the gateway, and nothing needs it later.
create table payins (
  merchant_id text not null,
  payin_id text not null,                 -- made of the idempotency key; the order number at the gateway too
  fingerprint bytea not null,             -- keyed hash over all that was asked for
  amount bigint not null,                 -- paise
  currency text not null,
  state text not null,
  reason text,
  version integer not null,
  pay_order_id text,
  checkout jsonb,                         -- what the payer needs, as the gateway gave it
  utr text,
  paid_at timestamptz,                    -- as the gateway tells it
  unknown_since timestamptz,
  queries integer not null default 0,
  absences integer not null default 0,
  due_at timestamptz,
  traceparent text,                       -- as it came with the request; results carry it on
  expires_at timestamptz not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (merchant_id, payin_id)
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

create index payins_due on payins (due_at) where due_at is not null;
-- For what a scrape counts. Unlike a payout's, the state may stand in an index: its transitions move due_at, which
-- is in one already.
create index payins_waiting on payins (merchant_id, state, created_at)
  where state in ('creating', 'unknown', 'open', 'review');

-- One history, and one rule for how long it is kept. Each entry is about a payout or about a payin.
alter table history
  alter column payout_id drop not null,
  add column payin_id text,
  add constraint history_about_one check (num_nonnulls(payout_id, payin_id) = 1);
create index history_payin on history (merchant_id, payin_id, at) where payin_id is not null;

-- Anomalies of payins, and of orders that nobody knows.
create index anomalies_order on anomalies (merchant_id, order_no) where payout_id is null;

-- Down Migration
drop index anomalies_order, history_payin;
delete from history where payin_id is not null;
alter table history drop constraint history_about_one, drop column payin_id, alter column payout_id set not null;
drop table payins;
