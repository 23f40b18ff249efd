-- Up Migration

-- Which log an offset counts in: the id that Kafka gave the topic when it was made. Null: not known.
alter table intake_offsets add column log_id text;

-- Cancellations that came before the payouts that they are about. A row goes when its payout comes, or after a month.
create table early_cancels (
  merchant_id text not null,
  payout_id text not null,
  why text not null,                      -- who asked for it, and their reason
  at timestamptz not null default now(),
  primary key (merchant_id, payout_id)
);
create index early_cancels_at on early_cancels (at);

-- Down Migration
drop table early_cancels;
alter table intake_offsets drop column log_id;
