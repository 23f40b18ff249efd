-- Up Migration

-- Who looked at an anomaly, and what came of it.
alter table anomalies
  add column acknowledged_by text,
  add column acknowledged_reason text,
  add column acknowledged_at timestamptz,
  add constraint anomalies_acknowledgement
    check (num_nulls(acknowledged_by, acknowledged_reason, acknowledged_at) in (0, 3));
create index anomalies_open on anomalies (merchant_id, at) where acknowledged_at is null;
create index anomalies_acknowledged on anomalies (merchant_id, at) where acknowledged_at is not null;

-- Transfers that came back after they were paid. The payout itself stays paid.
create table reversals (
  merchant_id text not null,
  payout_id text not null,
  anomaly_id uuid not null,               -- the gateway's word that it failed after all
  amount bigint not null,                 -- paise
  reversed_by text not null,
  reason text not null,
  at timestamptz not null default now(),
  primary key (merchant_id, payout_id)
);

-- Down Migration
drop table reversals;
drop index anomalies_open, anomalies_acknowledged;
alter table anomalies
  drop constraint anomalies_acknowledgement,
  drop column acknowledged_by, drop column acknowledged_reason, drop column acknowledged_at;
