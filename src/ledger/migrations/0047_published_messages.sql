-- Up Migration

-- What a recovery found in payout.events and payout.results of payouts that the ledger lacks: should their commands come
-- (again), by a replay of dead letters or from upstream, they are not taken in as new. Rows go when the command comes, and
-- never before, as a payoutId stands for one payout for ever. At most as many as those topics held messages.
create table published_messages (
  merchant_id text not null,
  payout_id text not null,
  version integer not null,
  is_result boolean not null,             -- of payout.results, else of payout.events
  from_state text,
  state text not null,
  reason text,
  evidence text not null,
  order_no text,
  amount bigint not null,
  currency text not null,
  agentpay_order_id text,
  fee bigint,
  utr text,
  at timestamptz not null,                -- when it happened, as was published
  primary key (merchant_id, payout_id, version, is_result)
);
alter table published_messages alter column merchant_id set (n_distinct = 2);

-- When the end happened whose result is still to be published. Null: untold is, or before this was kept.
alter table recovered_payouts add column untold_at timestamptz;

-- Down Migration
alter table recovered_payouts drop column untold_at;
drop table published_messages;
