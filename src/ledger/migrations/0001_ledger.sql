-- Older code: does not work

-- Times are those of the database's clock, amounts are paise, and hashes are keyed, unless a column says otherwise. Columns of one
-- width come before texts, which keeps rows small.

-- ## Payouts

-- What changes in a payout's life, kept narrow. Most of its columns are the fields of domain/payout/payout.ts.
create table payouts (
  merchant_id text not null,
  payout_id text not null,
  seq bigint generated always as identity,
  amount bigint not null,
  fee bigint,
  deadline timestamptz not null,
  due_at timestamptz,                     -- when time moves it, or when the gateway is to be asked about it
  unknown_since timestamptz,
  asked_at timestamptz,                   -- when the gateway was last asked about it; null: never
  accepted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  sent_at timestamptz,                    -- when it was first claimed to be sent; accepted_at where the ledger has lost that; null: never
  paid_at timestamptz,                    -- when it became paid; null: it is not
  version integer not null,
  attempt integer not null default 0,
  queries integer not null default 0,
  not_found_count integer not null default 0,
  priority smallint not null,
  ready boolean not null,                 -- a claim may take it
  doubted boolean not null default false,             -- an attempt before the latest may be alive
  turned_away boolean not null default false,         -- the gateway said "later" to an attempt, as a query confirmed, and may keep a failed order of it
  unreported boolean not null default false,          -- it failed without the gateway's own report that its order did
  absence_confirmed boolean not null default false,   -- it is sent again because the gateway confirmed that it has no order
  order_shown boolean not null default false,         -- the gateway showed that it has or had an order: a later "not found" proves no absence
  order_besides boolean not null default false,       -- it showed an order besides the latest attempt's, which only a payment or a person settles
  in_doubt boolean generated always as (state in ('submitting', 'unknown')) stored,
  in_review boolean generated always as (state = 'review') stored,
  awaits_key boolean generated always as (state = 'held' and reason = 'details-sealed') stored,
  awaits_release boolean generated always as
    (state = 'held' and reason in ('duplicate', 'duplicate-file', 'beneficiary-changed')) stored,
  state text not null,
  reason text,
  currency text not null,
  batch_id text,
  order_no text,
  account_id text,                        -- where an attempt was made that may be alive; null: nowhere
  agentpay_order_id text,
  utr text,
  refusal text,                           -- what the gateway said of a refusal or a failure, while nothing confirms it
  cancel_request text,                    -- who asked to cancel it and why, while that cannot be decided: it is not sent (again)
  unpaid_codes text,                      -- the retCodes of refusals and of "later", one in each line, the latest last
  -- Of a payout that ended unpaid: what the gateway has said since but that it failed. 'alive': that its order is alive, told before
  -- that it failed. 'open': an anomaly that nobody has acknowledged; 'acknowledged': somebody has.
  said_otherwise text,
  primary key (merchant_id, payout_id),
  constraint order_besides_is_shown check (order_shown or not order_besides),
  -- What the gateway has shown was sent by some attempt. Where no account is known, it may be at any.
  constraint shown_was_sent check (
    account_id is not null or doubted or turned_away or not order_shown or state not in ('held', 'queued', 'review')
  )
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- Partial, so that it cannot be taken for what the primary key does (docs/decisions/0005).
create unique index payouts_order on payouts (merchant_id, order_no) where order_no is not null;
create index payouts_batch on payouts (merchant_id, batch_id, seq) where batch_id is not null;
create index payouts_ready on payouts (merchant_id, priority desc, seq) where ready;
create index payouts_in_doubt on payouts (merchant_id) include (amount) where in_doubt;
create index payouts_in_review on payouts (merchant_id, payout_id) where in_review;
create index payouts_awaiting_key on payouts (merchant_id, payout_id) where awaits_key;
create index payouts_awaiting_release on payouts (merchant_id, payout_id) where awaits_release;
-- What time alone moves: everything that is open at the time that it is due, except that what the gateway is to be asked about only
-- has its deadline. By merchant, so that each gets its turn however much is due of another.
create index payouts_timers on payouts
  (merchant_id, (case when state in ('unknown', 'processing') then deadline else due_at end))
  where due_at is not null;
-- What the gateway is to be asked about, by merchant: each has queries of its own.
create index payouts_to_ask on payouts (merchant_id, due_at)
  where due_at is not null and state in ('unknown', 'processing');
-- What has not ended, by key: what a recovery lists and a person is shown. The condition is one that follows from no other, so that no
-- statement about a part of it takes this index (docs/decisions/0005).
create index payouts_open on payouts (merchant_id, payout_id)
  where coalesce(due_at is not null or in_review, false);
-- What is to be cancelled once that can be decided.
create index payouts_cancel_request on payouts (merchant_id, payout_id)
  where cancel_request is not null and due_at is not null;
-- Orders that are known to exist at an account, by the time when they were first sent.
create index payouts_known on payouts (merchant_id, account_id, sent_at, attempt)
  where account_id is not null and agentpay_order_id is not null;
-- A person finds a payout by what the gateway, or a bank, calls it.
create index payouts_agentpay on payouts (merchant_id, agentpay_order_id) where agentpay_order_id is not null;
create index payouts_utr on payouts (upper(utr)) where utr is not null;

-- What never changes: written once at intake.
create table payout_commands (
  merchant_id text not null,
  payout_id text not null,
  not_before timestamptz,                 -- before when it must not be sent, as its command says
  file bigint,                            -- 64 bits of a hash of the file that it came in
  row_number integer,
  fingerprint bytea not null,             -- over amount and beneficiary
  content bytea,                          -- over all that the command asks for
  sealed bytea not null,                  -- bank details and texts, AES-256-GCM, key id in front
  batch_id text,
  traceparent text,                       -- as it came with the command; messages about the payout carry it on
  faults jsonb,                           -- of a rejected command
  primary key (merchant_id, payout_id)
);
-- Every message looks up the traceparent of its payout, and most commands have none: this index says so in one step.
create index payout_commands_traced on payout_commands (merchant_id, payout_id) where traceparent is not null;

create table attempts (
  merchant_id text not null,
  payout_id text not null,
  lease_until timestamptz not null,
  claimed_at timestamptz not null default now(),
  attempt integer not null,
  order_no text not null,
  owner text not null,
  settings_hash text,                     -- the gateway settings that it was made with; null: a recovery found it
  primary key (merchant_id, payout_id, attempt)
);

-- Every transition of a payout or a payin, and every piece of evidence that moved nothing (version is null there).
create table history (
  merchant_id text not null,
  payout_id text,
  payin_id text,
  at timestamptz not null default clock_timestamp(),   -- under the payout's lock: in the order of its versions
  published_at timestamptz,               -- when the transition happened, as its messages say; null: there are none
  last_at timestamptz,                    -- when the same evidence came again; null: never
  version integer,
  times integer not null default 1,
  evidence_hash bytea,                    -- of evidence that moved nothing, by which the same is found again
  to_state text not null,
  from_state text,
  reason text,
  source text not null,
  exchange jsonb,
  constraint history_about_one check (num_nonnulls(payout_id, payin_id) = 1)
) partition by range (at);
create table history_default partition of history default;
create index history_payout on history (merchant_id, payout_id, at);
create index history_payin on history (merchant_id, payin_id, at) where payin_id is not null;

-- Makes the partitions of history for this month and the next two, and drops one that ended more than `keep_months` ago
-- (null: none). Returns whether something is left for another call. To be called now and then by every process.
--
-- Nobody waits for it longer than its lock_timeout: whatever it cannot lock in that time, because somebody reads the
-- history, it leaves for another call. A partition is made first and then attached: that locks the default partition
-- and no insert into any other. What the default partition holds of that month moves along.
--
-- Whoever calls it needs no right to make tables: it acts as its owner. So not everybody may call it (ledger/tables/grants.ts).
create function keep_history(keep_months integer) returns boolean
language plpgsql security definer
set timezone = 'UTC' set lock_timeout = '100ms' as $$
declare
  month timestamptz;
  name text;
begin
  if not pg_try_advisory_xact_lock(hashtext('keep_history')) then
    return true;
  end if;
  for ahead in 0..2 loop
    month := date_trunc('month', now()) + ahead * interval '1 month';
    name := 'history_' || to_char(month, 'YYYY_MM');
    continue when to_regclass(quote_ident(name)) is not null;
    execute format('create table %I (like history including all)', name);
    execute format('alter table %I alter column merchant_id set (n_distinct = 2)', name);
    execute format(
      'with moved as (delete from history_default where at >= %1$L and at < %2$L returning *)
       insert into %3$I select * from moved', month, month + interval '1 month', name);
    execute format('alter table history attach partition %I for values from (%L) to (%L)',
                   name, month, month + interval '1 month');
  end loop;
  select relname into name from pg_inherits join pg_class on pg_class.oid = inhrelid
  where inhparent = 'history'::regclass and relname ~ '^history_\d{4}_\d{2}$'
    and to_date(right(relname, 7), 'YYYY_MM') + interval '1 month'
        < date_trunc('month', now()) - keep_months * interval '1 month'
  order by relname limit 1;
  if found then
    execute format('drop table %I', name);
  end if;
  return found;
exception when lock_not_available then
  return true;
end
$$;
-- Its caller's temporary tables must not be taken for ours.
do $$
begin
  execute format('alter function keep_history(integer) set search_path = %I, pg_temp', current_schema());
end
$$;
revoke execute on function keep_history(integer) from public;
select keep_history(null);

create table anomalies (
  merchant_id text not null,
  anomaly_id uuid not null,
  at timestamptz not null default now(),
  last_at timestamptz,                    -- when the same was last reported again; null: never
  acknowledged_at timestamptz,
  times integer not null default 1,
  payout_id text,
  order_no text,
  kind text not null,
  detail text not null,
  source text not null,
  acknowledged_by text,
  acknowledged_reason text,
  exchange jsonb,
  primary key (merchant_id, anomaly_id),
  constraint anomalies_acknowledgement
    check (num_nulls(acknowledged_by, acknowledged_reason, acknowledged_at) in (0, 3))
);
create index anomalies_of_payout on anomalies (merchant_id, payout_id) where payout_id is not null;
-- Of payins, and of orders that nobody knows.
create index anomalies_order on anomalies (merchant_id, order_no) where payout_id is null;
create index anomalies_open on anomalies (merchant_id, at) where acknowledged_at is null;
create index anomalies_acknowledged on anomalies (merchant_id, at) where acknowledged_at is not null;

-- Transfers that came back after they were paid. The payout itself stays paid.
create table reversals (
  merchant_id text not null,
  payout_id text not null,
  anomaly_id uuid not null,               -- the gateway's report that it failed after all
  amount bigint not null,
  reversed_by text not null,
  reason text not null,
  at timestamptz not null default now(),
  primary key (merchant_id, payout_id)
);

-- ## The same payment twice

-- What finds an earlier payout of the same: each table has one way to a row (docs/decisions/0005).
create table payments (
  merchant_id text not null,
  payee_hash bytea not null,              -- of the bank details
  amount bigint not null,
  pays_at timestamptz not null,           -- from when on it may be sent: its notBefore, or when it was accepted
  -- Whatever pays the same and was to be paid before this had ended when this row was written: a later payment of the same need look
  -- no further back. Null: nobody looked.
  open_from timestamptz,
  batch text not null,                    -- a payout without a batch is a batch of its own
  payout_id text not null,
  primary key (merchant_id, payee_hash, amount, batch, pays_at, payout_id)
);
-- What pays the same in a pay period, however many there are in others.
create index payments_by_time on payments (merchant_id, payee_hash, amount, pays_at, batch, payout_id);
create index payments_of_payout on payments (merchant_id, payout_id);

-- To which bank details a beneficiary was to be paid, where the command names him by an id.
create table beneficiary_payments (
  merchant_id text not null,
  beneficiary_id_hash bytea not null,
  pays_at timestamptz not null,
  payout_id text not null,
  beneficiary_hash bytea not null,
  primary key (merchant_id, beneficiary_id_hash, pays_at, payout_id)
);
create index beneficiary_payments_of_payout on beneficiary_payments (merchant_id, payout_id);

-- Payments whose payout had ended and then changed, or of which payoutd had to ask what a callback said: open_from in payments
-- may have passed over them, so a later payment of the same is always compared with them.
create table reopened_payments (
  merchant_id text not null,
  payee_hash bytea not null,
  amount bigint not null,
  pays_at timestamptz not null,
  batch text not null,
  payout_id text not null,
  primary key (merchant_id, payee_hash, amount, pays_at, batch, payout_id)
);

-- Why a payout was held for a person. A row for each reason; it stays when the payout is released.
create table holds (
  merchant_id text not null,
  payout_id text not null,
  reason text not null,                   -- duplicate, duplicate-file, beneficiary-changed
  earlier_payout_id text,                 -- the payout it repeats; or the last one that was paid to other bank details
  earlier_batch_id text,                  -- that payout's batch; or the one under which the same file came first
  earlier_merchant_id text,               -- the merchant for whom the same file came first, if it is another one
  pays_at timestamptz not null,           -- from when on the payout itself may be sent
  since timestamptz not null,             -- from when on that was paid, or to be paid; of a file: as in files
  primary key (merchant_id, payout_id, reason)
);

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

-- Under which batch, of any merchant, a file came first: the one whose payout of that file was stored first.
create table files (
  file bigint primary key,                -- as payout_commands.file
  merchant_id text not null,
  batch_id text not null,
  since timestamptz not null default now()
);

-- Cancellations that came before the payouts that they are about.
create table early_cancels (
  merchant_id text not null,
  payout_id text not null,
  why text not null,                      -- who asked for it, and their reason
  source text not null,
  at timestamptz not null default now(),
  primary key (merchant_id, payout_id)
);
create index early_cancels_at on early_cancels (at);

-- Batches that a person cancelled: what comes of them later is cancelled as it comes.
create table cancelled_batches (
  merchant_id text not null,
  batch_id text not null,
  why text not null,
  at timestamptz not null default now(),
  primary key (merchant_id, batch_id)
);

-- ## Merchants and their gateway accounts

-- One row per merchant. Every claim locks it, so that all processes together keep one merchant's limits.
create table merchants (
  merchant_id text primary key,
  settings_hash text not null,            -- the gateway settings in force
  paused_at timestamptz,
  paused_by text,
  paused_reason text,
  -- The balance, as the gateway said at snapshot_at; null: never asked, or no longer valid.
  available bigint,
  snapshot_at timestamptz,
  snapshot_in_doubt bigint not null default 0,   -- what was submitting or unknown when the balance was asked for
  snapshot_claimed bigint not null default 0,    -- claimed_total at that moment
  claimed_total bigint not null default 0,       -- ever claimed, estimated fees included; only grows
  -- The fee of a payout at most: an amount, corrected from answers, and millionths of the payout's. Null: no answer told it yet.
  fee_estimate bigint not null default 0,
  fee_share bigint,
  -- The next payout where the balance does not cover it, and since when. It may have moved since.
  short_payout_id text,
  short_since timestamptz,
  -- The pace of sending (stages/dispatch/merchant-gate.ts).
  rate_next timestamptz,                         -- when the next apply may leave under the rate budget
  -- Applies a second that the gateway seems to take, because it answered "later" to more; null: no limit was met.
  learned_rate double precision,
  rate_lowered_at timestamptz,
  rate_raised_at timestamptz,
  warm_up integer not null default 0,            -- good answers since the canary began
  consecutive_failures integer not null default 0,   -- answers in a row that neither accept nor refuse
  refusals integer not null default 0,           -- of a canary, since the gateway last accepted something
  circuit_opened integer not null default 0,     -- times in a row, for the back-off
  circuit_open_until timestamptz,
  circuit_reason text,
  -- The fence after a loss of the ledger's data: nothing is sent, and nothing that was never sent ends, until every open order has
  -- been asked about.
  recovering_since timestamptz,
  recovering_by text,
  recovering_reason text,
  recovering_one_step boolean not null default false,   -- nothing but one step of the server's history raised it
  -- How often the ledger was found to have lost something while a recovery was under way: an answer of before counts no more.
  recovery_round integer not null default 0,
  -- When `payoutd recover` was first called in this round: by then whoever runs it has stopped the former server.
  recovery_began timestamptz,
  -- The settings of every account by which it asks: what it was answered by others counts no more.
  recovery_settings text,
  constraint merchants_recovering
    check (num_nulls(recovering_since, recovering_by, recovering_reason) in (0, 3))
);
-- Every transaction that stores evidence asks who is fenced, which is nearly always nobody.
create index merchants_fenced on merchants (merchant_id) where recovering_since is not null;

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

-- Gateways that mix answers up, or proxies before them: an answer was about another order than the one asked about. No "not
-- found" of theirs counts until a grace has passed since mixed_until.
create table mixed_answers (
  base_url text primary key,              -- as gateway_settings.base_url
  mixed_until timestamptz not null,
  merchant_id text not null,              -- who asked, the latest time
  order_no text                           -- about which order; null: about the balance
);

-- ## Callbacks

-- How far each process is behind with the callbacks of each merchant; dispatch slows down for it.
create table merchant_callback_lag (
  merchant_id text not null,
  process_id text not null,
  lag_ms integer not null,
  seen_at timestamptz not null,
  primary key (merchant_id, process_id)
);

-- Callbacks for merchants that left the settings with orders open. One process at a time takes them up once the merchant is back.
create table kept_callbacks (
  merchant_id text not null,
  kind text not null,                     -- payout, payin
  order_no text not null,                 -- as the callback says, before anybody could verify it
  query_hash bytea not null,              -- of what came; the same is kept once
  sealed bytea not null,                  -- the query string as it came
  at timestamptz not null default now(),
  primary key (merchant_id, kind, order_no, query_hash)
);
create index kept_callbacks_arrival on kept_callbacks (kind, at, merchant_id, order_no, query_hash);
create table kept_callback_turns (
  kind text primary key,
  holder uuid not null,
  until timestamptz not null
);

-- Orders of which a callback was turned away, or dropped, while their merchant was not in the settings: the gateway is asked
-- about each once the merchant is back, ended or not. One row for an order, however often.
create table lost_callbacks (
  merchant_id text not null,
  kind text not null,                     -- payout, payin
  order_no text not null,
  ask_at timestamptz not null default now(),
  not_found_count integer not null default 0,   -- since a callback of it was lost last
  primary key (merchant_id, kind, order_no)
);
create index lost_callbacks_due on lost_callbacks (kind, merchant_id, ask_at);

-- Triggers, so that no writer of a state, an anomaly or a question can forget it.
create function keep_reopened(of_merchant text, of_payout text) returns void language sql as $$
  insert into reopened_payments
  select merchant_id, payee_hash, amount, pays_at, batch, payout_id from payments
  where merchant_id = of_merchant and payout_id = of_payout
  on conflict do nothing
$$;
create function keep_reopened_payout() returns trigger language plpgsql as $$
begin
  perform keep_reopened(new.merchant_id, new.payout_id);
  return null;
end
$$;
create trigger reopened after update of state, said_otherwise on payouts for each row
  when (old.state in ('paid', 'failed', 'rejected', 'cancelled')
    and (old.state, old.said_otherwise) is distinct from (new.state, new.said_otherwise))
  execute function keep_reopened_payout();
create function keep_doubted_payout() returns trigger language plpgsql as $$
begin
  perform keep_reopened(merchant_id, payout_id) from payouts
  where merchant_id = new.merchant_id and order_no = new.order_no and state <> 'paid';
  return null;
end
$$;
create trigger doubted after insert on lost_callbacks for each row
  when (new.kind = 'payout') execute function keep_doubted_payout();

-- ## Intake

-- Where intake reads on: what Kafka's own group offsets say is for lag only.
create table intake_offsets (
  topic text not null,
  partition integer not null,
  next_offset bigint not null,
  log_id text,                            -- which log it counts in: the id that Kafka gave the topic; null: not known
  -- Under which leader's epoch the command before an offset was written, by which Kafka tells whether it has lost that since.
  leader_epoch integer,
  -- Where it stood when it was last begun at an earlier offset or in another log, because Kafka had lost a part of it or the topic
  -- was made again: whoever had read it up to there knows that the ledger has forgotten nothing.
  left_offset bigint,
  left_log_id text,
  primary key (topic, partition)
);

-- Commands of merchants whose locks somebody held when they were read: stored later, in the order of position, while the
-- partition goes on without them.
create table waiting_commands (
  merchant_id text not null,
  topic text not null,
  partition integer not null,
  position bigint generated always as identity,
  log_id text,
  record_offset bigint not null,
  origin text not null,                   -- the same in one text, to which the seal is bound
  sealed bytea not null,                  -- the record as it came, sealed as a dead letter is
  cancels text,                           -- the payoutId that it cancels, which no claim takes meanwhile; null: it cancels nothing
  at timestamptz not null default now(),
  primary key (merchant_id, topic, partition, position)
);
create index waiting_commands_cancels on waiting_commands (merchant_id, cancels) where cancels is not null;

-- Dead letters that were published again as commands. `letter`: what was sealed, as SHA-256 in hexadecimal, because a position is
-- given to another letter once Kafka has lost the end of its log.
create table letter_replays (
  letter text primary key,
  times integer not null default 1,
  replayed_by text not null,              -- of the latest time, as the next two
  reason text not null,
  at timestamptz not null default now()
);

-- What tells the keys apart that were once in use, so that no process works with others.
create table key_proofs (
  key_id smallint primary key,            -- of ENCRYPTION_KEYS, 1 to 255; 0: FINGERPRINT_KEY
  proof bytea not null                    -- an empty text sealed with it; of FINGERPRINT_KEY a keyed hash
);

-- ## Messages on their way to Kafka

-- Which topics are the ledger's own: several installations may share a Kafka, and whoever works on this ledger publishes to these.
create table ledger_topics (
  only_one boolean primary key default true check (only_one),
  prefix text not null                    -- TOPIC_PREFIX
);

-- Under which ids the registry has the schemas of payoutd's own messages, which are published under them.
create table schema_ids (
  id integer not null,
  subject text not null,
  schema_hash bytea not null,             -- SHA-256 of the text
  primary key (subject, schema_hash)
);

-- A row holds the messages that one transaction left for one topic in one shard, in their order: a row for each message would cost
-- more than the message. The relay deletes what it has published (docs/decisions/0002). A dead letter has a row of its own.
create table outbox (
  position bigint generated always as identity,
  at timestamptz not null default now(),
  bytes integer not null,                 -- of the contents
  shard smallint not null,
  topic text not null,
  keys text[] not null,
  event_ids uuid[] not null,
  types text[] not null,
  contents bytea[] not null,
  headers jsonb[] not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
-- A queue for each topic in each shard, so that what waits for one topic stands before no other's.
create index outbox_queues on outbox (shard, topic, position);

-- Messages that Kafka has refused, each by itself, and would refuse again; a person has the relay try one once more.
create table outbox_refused (
  position bigint generated by default as identity primary key,
  at timestamptz not null,                -- when it was put into the outbox
  refused_at timestamptz not null default now(),
  event_id uuid not null,
  shard smallint not null,
  topic text not null,
  key text not null,
  type text not null,
  reason text not null,                   -- Kafka's name for the error
  value bytea not null,
  headers jsonb
);

create table relay_shards (
  shard smallint primary key,
  owner text,
  epoch bigint not null default 0,
  lease_until timestamptz not null default '-infinity',
  -- Below done_below nothing of a shard waits, and nothing will: the relay reads from there on, and not past all that was deleted
  -- while somebody kept a snapshot. next_below takes its place once every transaction has ended that began before next_xid.
  done_below bigint not null default 0,
  next_below bigint,
  next_xid xid8
);

-- ## Payins

-- Collections. What the payer told about himself is in no column: it goes to the gateway, and nothing needs it later.
create table payins (
  merchant_id text not null,
  payin_id text not null,                 -- made of the idempotency key; the order number at the gateway too
  amount bigint not null,
  due_at timestamptz,
  unknown_since timestamptz,
  asked_at timestamptz,                   -- when the gateway was last asked about it; null: never
  paid_at timestamptz,                    -- as the gateway tells it
  expires_at timestamptz not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version integer not null,
  queries integer not null default 0,
  not_found_count integer not null default 0,
  -- A UTR recovery, or a sign of a payment, has it asked about as often as the dialect has waits, also past its end.
  asked_anew boolean not null default false,
  order_shown boolean not null default false,   -- the gateway showed that it has or had the order
  fingerprint bytea not null,             -- over all that was asked for
  state text not null,
  reason text,
  currency text not null,
  account_id text,                        -- where it was asked for
  pay_order_id text,
  utr text,
  traceparent text,                       -- as it came with the request; results carry it on
  checkout jsonb,                         -- what the payer needs, as the gateway gave it
  primary key (merchant_id, payin_id)
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
-- Leases of creations, by merchant: what somebody holds of one hides nothing that another waits for.
create index payins_leases on payins (merchant_id, due_at) where due_at is not null and state = 'creating';
create index payins_to_ask on payins (merchant_id, due_at) where due_at is not null and state <> 'creating';
-- For what a scrape counts. Unlike a payout's, the state may stand in an index: its transitions move due_at, which
-- is in one already.
create index payins_waiting on payins (merchant_id, state, created_at)
  where state in ('creating', 'unknown', 'open', 'review');
create index payins_known on payins (merchant_id, account_id, created_at)
  where account_id is not null and pay_order_id is not null and state in ('open', 'paid', 'failed');
-- Whose UTR it is: nobody calls two payins paid by one transfer.
create index payins_utr on payins (upper(utr)) where utr is not null;

-- ## After a loss of the ledger's data

-- Which server, and which of its histories, the ledger was last worked with on. A standby that was promoted, and
-- a backup that was restored, go on in another timeline; another cluster has another identifier. A copy in
-- the same server, or a dump loaded there, is a database with another OID.
create table ledger_server (
  only_one boolean primary key default true check (only_one),
  system_identifier text not null,
  timeline bigint not null,
  database_oid bigint not null,
  since timestamptz not null default now(),
  predecessor text,                       -- why another ledger may have sent payouts before this one began; null: nothing says so
  loss_found timestamptz                  -- when a recovery last found that the ledger lacked something, of whatever merchant
);

-- What proves that the ledger was set back, stored with its evidence, until every merchant is fenced for it. While there is any, no
-- claim takes anything.
create table proven_losses (
  position bigint generated always as identity primary key,
  reason text not null
);

-- What a recovery has to ask about. Its rows go when the fence does.
create table recovered_payouts (
  merchant_id text not null,
  payout_id text not null,
  sent boolean not null default false,    -- it was published that it was sent, and not that it was not
  round integer not null default 0,
  not_found_count integer not null default 0,   -- in a row that counted
  not_found_since timestamptz,            -- the first of these
  found text,                             -- what it came to (operators/recovery/sql/list.ts); null: still to be asked
  -- What proves a published end that the database lost, and whose result is in no topic, and when that end happened: it is published
  -- once the gateway was asked. Null: there is none.
  untold text,
  untold_at timestamptz,
  primary key (merchant_id, payout_id)
);

-- What a recovery found in payout.events and payout.results of payouts that the ledger lacks: should their commands come
-- (again), by a replay of dead letters or from upstream, they are not taken for new. Rows go when the command comes, and
-- never before, as a payoutId stands for one payout for ever. At most as many as those topics held messages.
create table published_messages (
  merchant_id text not null,
  payout_id text not null,
  version integer not null,
  is_result boolean not null,             -- of payout.results, else of payout.events
  at timestamptz not null,                -- when it happened, as was published; ledgers lost one after another may tell two under one version
  amount bigint not null,
  fee bigint,
  from_state text,
  state text not null,
  reason text,
  evidence text not null,
  order_no text,
  currency text not null,
  agentpay_order_id text,
  utr text,
  primary key (merchant_id, payout_id, version, is_result, at)
);

-- ## People

-- Runs of `payoutd reconcile`, each about the payouts of one merchant that were accepted in a period.
create table reconciliations (
  reconciliation_id uuid primary key,
  merchant_id text not null,
  period_from timestamptz not null,
  period_to timestamptz not null,
  started_at timestamptz not null default now(),
  finished_at timestamptz,                -- null: something is still to be asked
  balance bigint,                         -- all of it, as the gateway said; null: it did not
  balance_at timestamptz,                 -- the balance is of some moment between started_at and this one
  in_flight bigint,                       -- what it might have had in hand for us then, fees included
  account_id text                         -- whose balance it is
);
create index reconciliations_merchant on reconciliations (merchant_id, started_at);

create table reconciled_payouts (
  reconciliation_id uuid not null references reconciliations on delete cascade,
  payout_id text not null,
  asked_at timestamptz,                   -- null: the gateway has not answered yet
  gateway_status text,                    -- what it answered; all null: that it has no such order
  gateway_amount bigint,
  gateway_fee bigint,
  ledger_state text,                      -- what the ledger had then
  ledger_fee bigint,
  differences jsonb,                      -- [{kind, here, there}]
  settled boolean not null default false, -- they were settled by this run
  primary key (reconciliation_id, payout_id)
);

-- What people did, by the commands they gave. Only ever added to: the role that runs payoutd may not change or delete
-- a row (ledger/tables/grants.ts). The database itself says which role connected from where.
create table operator_acts (
  act_id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  acted_by text not null,                 -- who decides, as --by says
  reason text not null,                   -- bank details masked
  command text not null,                  -- without its arguments, such as "payout cancel"
  os_user text not null,
  host text not null,
  database_role text not null default session_user,
  client_address inet default inet_client_addr(),   -- null: over a socket
  merchant_id text,                       -- null: it is about no merchant
  subjects text[] not null,               -- payouts, anomalies, dead letters, keys, orders: what it was done to
  before jsonb,                           -- both hold what the act changed, and no bank details
  after jsonb
);

-- ## The tables themselves

-- Which payoutd works on these tables: one that has this migration, or a later one (docs/decisions). A migration after
-- which older code no longer works sets it to its own name.
create table compatibility (oldest text not null);
create unique index compatibility_one on compatibility ((true));
insert into compatibility values ('0001_ledger');

-- A ledger has few merchants and very many payouts. Statistics made while it had one payout say that a merchant's id
-- finds one row, as an order number does; a statement planned on them reads all rows of the merchant, by whatever index
-- begins with its id. How many merchants to count on, wherever statistics are made:
do $$
declare
  about_merchants regclass;
begin
  for about_merchants in
    select t.oid
    from pg_attribute a join pg_class t on t.oid = a.attrelid
    where a.attname = 'merchant_id' and not a.attisdropped and t.relkind = 'r'
      and t.relnamespace = current_schema()::regnamespace and t.relname <> 'merchants'
  loop
    execute format('alter table %s alter column merchant_id set (n_distinct = 2)', about_merchants);
  end loop;
end $$;
