-- Up Migration

-- One row per merchant: the balance as last asked for, the pace of sending, and the stop buttons. Every
-- claim locks it, so that all processes together keep one merchant's limits.
create table merchants (
  merchant_id text primary key,
  settings_hash text not null,            -- base URL, mchId, dialect and key; a change starts the canary again
  paused_by text,
  paused_reason text,
  paused_at timestamptz,
  available bigint,                       -- paise, as the gateway said at snapshot_at; null: never asked, or voided
  snapshot_at timestamptz,
  snapshot_in_doubt bigint not null default 0,   -- paise submitting or unknown when the balance was asked for
  snapshot_claimed bigint not null default 0,    -- claimed_total at that moment
  claimed_total bigint not null default 0,       -- paise ever claimed, estimated fees included; only grows
  fee_estimate bigint not null default 0,        -- paise per payout, corrected from answers
  rate_next timestamptz,                  -- when the next apply may leave under the rate budget
  ramp integer not null default 0,        -- good answers since the canary began; see dispatch/pace.ts
  bad_run integer not null default 0,     -- refused connections and unknowns in a row
  circuit_opened integer not null default 0,     -- times in a row, for the back-off
  circuit_open_until timestamptz,
  circuit_reason text
);

-- What changes, kept narrow: four updates in a payout's life.
create table payouts (
  merchant_id text not null,
  payout_id text not null,
  seq bigint generated always as identity,
  batch_id text,
  order_no text,
  amount bigint not null,
  currency text not null,
  priority smallint not null,
  state text not null,
  reason text,
  version integer not null,
  attempt integer not null default 0,
  agentpay_order_id text,
  fee bigint,
  utr text,
  deadline timestamptz not null,
  unknown_since timestamptz,
  queries integer not null default 0,
  absences integer not null default 0,
  ready boolean not null,
  due_at timestamptz,
  in_doubt boolean generated always as (state in ('submitting', 'unknown')) stored,
  in_review boolean generated always as (state = 'review') stored,
  accepted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (merchant_id, payout_id)
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- Partial, so that it cannot be taken for what the primary key does (docs/decisions/0005).
create unique index payouts_order on payouts (merchant_id, order_no) where order_no is not null;
create index payouts_batch on payouts (merchant_id, batch_id, seq) where batch_id is not null;
-- The state itself is in no index, so that most updates stay on their page (HOT).
create index payouts_ready on payouts (merchant_id, priority desc, seq) where ready;
create index payouts_due on payouts (due_at) where due_at is not null;
create index payouts_in_doubt on payouts (merchant_id) include (amount) where in_doubt;
create index payouts_in_review on payouts (merchant_id) where in_review;

-- What never changes: written once at intake.
create table payout_commands (
  merchant_id text not null,
  payout_id text not null,
  batch_id text,
  row_number integer,
  fingerprint bytea not null,
  beneficiary_hash bytea not null,
  sealed bytea not null,                  -- bank details and texts, AES-256-GCM, key id in front
  faults jsonb,                           -- of a rejected command
  traceparent text,                       -- as it came with the command; messages about the payout carry it on
  primary key (merchant_id, payout_id)
);

create table attempts (
  merchant_id text not null,
  payout_id text not null,
  attempt integer not null,
  order_no text not null,
  owner text not null,
  lease_until timestamptz not null,
  claimed_at timestamptz not null default now(),
  primary key (merchant_id, payout_id, attempt)
);

-- Every transition, and every piece of evidence that moved nothing (version is null there).
create table history (
  merchant_id text not null,
  payout_id text not null,
  at timestamptz not null default clock_timestamp(),   -- under the payout's lock: in the order of its versions
  version integer,
  from_state text,
  to_state text not null,
  reason text,
  source text not null,
  exchange jsonb
) partition by range (at);
create table history_default partition of history default;
create index history_payout on history (merchant_id, payout_id, at);

-- Makes this month's partition and the next two, and drops those that ended more than `keep_months` ago
-- (null: none). To be called now and then by every process; they take turns.
create function keep_history(keep_months integer) returns void language plpgsql as $$
declare
  month timestamptz;
  old text;
begin
  perform pg_advisory_xact_lock(hashtext('keep_history'));
  for ahead in 0..2 loop
    month := date_trunc('month', now()) + ahead * interval '1 month';
    execute format('create table if not exists %I partition of history for values from (%L) to (%L)',
                   'history_' || to_char(month, 'YYYY_MM'), month, month + interval '1 month');
  end loop;
  for old in
    select relname from pg_inherits join pg_class on pg_class.oid = inhrelid
    where inhparent = 'history'::regclass and relname ~ '^history_\d{4}_\d{2}$'
      and to_date(right(relname, 7), 'YYYY_MM') + interval '1 month'
          < date_trunc('month', now()) - keep_months * interval '1 month'
  loop
    execute format('drop table %I', old);
  end loop;
end
$$;
select keep_history(null);

create table anomalies (
  merchant_id text not null,
  anomaly_id uuid not null,
  payout_id text,
  order_no text,
  kind text not null,
  detail text not null,
  source text not null,
  exchange jsonb,
  at timestamptz not null default now(),
  primary key (merchant_id, anomaly_id)
);
create index anomalies_payout on anomalies (merchant_id, payout_id);

-- One row per file that was sent under a batch: a corrected file declares it again.
create table batches (
  merchant_id text not null,
  batch_id text not null,
  rows integer not null,
  amount bigint not null,
  refused integer not null,
  file_hash text not null,
  declared_at timestamptz not null,
  primary key (merchant_id, batch_id, file_hash)
);

-- Messages on their way to Kafka. The relay deletes what it has published (docs/decisions/0002).
create table outbox (
  shard smallint not null,
  position bigint generated always as identity,
  topic text not null,
  key text not null,
  event_id uuid not null,
  type text not null,
  value bytea not null,
  headers jsonb,
  at timestamptz not null default now()
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
create index outbox_next on outbox (shard, position);

create table relay_shards (
  shard smallint primary key,
  owner text,
  epoch bigint not null default 0,
  lease_until timestamptz not null default '-infinity'
);

-- Where intake reads on: what Kafka's own group offsets say is for lag only.
create table intake_offsets (
  topic text not null,
  partition integer not null,
  next_offset bigint not null,
  primary key (topic, partition)
);

-- How far behind each process's callback door is; dispatch slows down for it.
create table callback_lag (
  process_id text primary key,
  lag_ms integer not null,
  seen_at timestamptz not null
);

-- Down Migration
drop function keep_history;
drop table callback_lag, intake_offsets, relay_shards, outbox, batches, anomalies, history, attempts,
  payout_commands, payouts, merchants;
