-- Up Migration

-- Orders of which a callback was turned away, or dropped, while their merchant was not in the settings: the gateway is asked
-- about each once the merchant is back, ended or not. One row for an order, however often.
create table lost_callbacks (
  merchant_id text not null,
  kind text not null,                     -- payout, payin
  order_no text not null,
  ask_at timestamptz not null default now(),
  primary key (merchant_id, kind, order_no)
);
create index lost_callbacks_due on lost_callbacks (kind, merchant_id, ask_at);

-- Kept callbacks are taken up as they came, and by one process at a time.
create index kept_callbacks_arrival on kept_callbacks (kind, at, merchant_id, order_no, query_hash);
create table kept_callback_turns (
  kind text primary key,
  holder uuid not null,
  until timestamptz not null
);

-- Down Migration
drop table kept_callback_turns;
drop index kept_callbacks_arrival;
drop table lost_callbacks;
