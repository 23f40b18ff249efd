-- Up Migration

-- Gateway settings that were ever in force: those of merchants.settings_hash are. Attempts say with which they were
-- made. Who changed them, when and why, stands in operator_acts.
create table gateway_settings (
  merchant_id text not null,
  settings_hash text not null,            -- over base URL, mchId, dialect and key
  account_id text not null,               -- stands for base URL and mchId alone
  base_url text not null,
  mch_id text not null,
  key_fingerprint text not null,          -- of the key's HMAC under itself
  dialect_name text not null,             -- as the settings call it
  first_seen timestamptz not null default now(),
  primary key (merchant_id, settings_hash)
);

-- Null: of before it was kept.
alter table attempts add column settings_hash text;

alter table payouts
  add column account_id text,             -- where an attempt was made that may be alive; null: nowhere
  add column doubted boolean not null default false;   -- an attempt before the latest may be alive

alter table payins add column account_id text;          -- where it was asked for; null: of before it was kept

-- Callbacks for merchants that left the settings with orders open. The start feeds them in when the merchant is back.
create table kept_callbacks (
  merchant_id text not null,
  kind text not null,                     -- payout, payin
  order_no text not null,                 -- as the callback says, before anybody could verify it
  query_hash bytea not null,              -- of what came; the same is kept once
  sealed bytea not null,                  -- the query string as it came
  at timestamptz not null default now(),
  primary key (merchant_id, kind, order_no, query_hash)
);

-- Down Migration
drop table kept_callbacks;
alter table payins drop column account_id;
alter table payouts drop column account_id, drop column doubted;
alter table attempts drop column settings_hash;
drop table gateway_settings;
