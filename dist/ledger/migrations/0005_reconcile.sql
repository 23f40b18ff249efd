-- Up Migration

-- Dead letters that were published again as commands.
create table dlq_replays (
  topic text not null,
  partition integer not null,
  position bigint not null,               -- the dead letter's offset
  times integer not null default 1,
  replayed_by text not null,              -- of the latest time, as the next two
  reason text not null,
  at timestamptz not null default now(),
  primary key (topic, partition, position)
);

-- Runs of `payoutd reconcile`, each about the payouts of one merchant that were accepted in a period.
create table reconciliations (
  reconciliation_id uuid primary key,
  merchant_id text not null,
  period_from timestamptz not null,
  period_to timestamptz not null,
  started_at timestamptz not null default now(),
  finished_at timestamptz,                -- null: something is still to be asked
  balance bigint,                         -- paise, all of it, as the gateway said when the run began; null: it did not
  in_flight bigint                        -- paise that it might have had in hand for us then, fees included
);
create index reconciliations_merchant on reconciliations (merchant_id, started_at);

create table reconciled_payouts (
  reconciliation_id uuid not null references reconciliations on delete cascade,
  payout_id text not null,
  asked_at timestamptz,                   -- null: the gateway has not answered yet
  there_status text,                      -- what it answered; all null: that it has no such order
  there_amount bigint,
  there_fee bigint,
  differences jsonb,                      -- [{kind, here, there}]
  settled boolean not null default false, -- they were settled by this run
  primary key (reconciliation_id, payout_id)
);

-- Down Migration
drop table reconciled_payouts, reconciliations, dlq_replays;
