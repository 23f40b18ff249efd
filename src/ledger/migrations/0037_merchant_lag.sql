-- Up Migration

-- How far the callback door of each process is behind with the callbacks of each merchant. callback_lag, which had it of
-- all merchants together, is for processes of an older version alone.
create table merchant_callback_lag (
  merchant_id text not null,
  process_id text not null,
  lag_ms integer not null,
  seen_at timestamptz not null,
  primary key (merchant_id, process_id)
);

-- Down Migration
drop table merchant_callback_lag;
