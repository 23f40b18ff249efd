-- The tables of the naive way: what a payout is, and what happened to it.
create table payouts (
  merchant_id text not null,
  payout_id text not null,
  batch_id text,
  order_no text not null,
  amount bigint not null,
  currency text not null,
  state text not null,
  version integer not null,
  agentpay_order_id text,
  fee bigint,
  utr text,
  sealed bytea not null,
  updated_at timestamptz not null default now(),
  primary key (merchant_id, payout_id)
);
create unique index payouts_order on payouts (order_no);

create table history (
  merchant_id text not null,
  payout_id text not null,
  version integer not null,
  from_state text,
  to_state text not null,
  source text not null,
  exchange jsonb,
  at timestamptz not null default now()
);
create index history_payout on history (merchant_id, payout_id);
