-- Up Migration

-- What finds an earlier payout of the same. Tables with one key each, so that there is one way to a row
-- (docs/decisions/0005); written once at intake, like payout_commands.
create table payments (
  merchant_id text not null,
  beneficiary_hash bytea not null,        -- keyed hash of the bank details
  amount bigint not null,                 -- paise
  batch text not null,                    -- a payout without a batch is a batch of its own
  pays_at timestamptz not null,           -- from when on it may be sent: its notBefore, or when it was taken in
  payout_id text not null,
  primary key (merchant_id, beneficiary_hash, amount, batch, pays_at, payout_id)
);
insert into payments
select merchant_id, c.beneficiary_hash, p.amount, coalesce(p.batch_id, payout_id), p.accepted_at, payout_id
from payouts p join payout_commands c using (merchant_id, payout_id) where p.state <> 'rejected';
alter table payout_commands drop column beneficiary_hash;

-- To which bank details a beneficiary was to be paid, where the command names him by an id.
create table beneficiary_payments (
  merchant_id text not null,
  beneficiary_id_hash bytea not null,     -- keyed hash of the beneficiaryId
  pays_at timestamptz not null,
  payout_id text not null,
  beneficiary_hash bytea not null,
  primary key (merchant_id, beneficiary_id_hash, pays_at, payout_id)
);

alter table batches drop constraint batches_pkey, add primary key (merchant_id, file_hash, batch_id);

-- Why a payout was held for a person. A row for each reason; it stays when the payout is released.
create table holds (
  merchant_id text not null,
  payout_id text not null,
  reason text not null,                   -- duplicate, duplicate-file, beneficiary-changed
  earlier_payout_id text,                 -- the payout it repeats; or the last one that was paid to other bank details
  earlier_batch_id text,                  -- that payout's batch; or the one under which the same file came first
  pays_at timestamptz not null,           -- from when on the payout itself may be sent
  since timestamptz not null,             -- from when on that was paid, or to be paid; of a file: when it was declared
  primary key (merchant_id, payout_id, reason)
);

alter table payouts
  add column awaits_release boolean generated always as
    (state = 'held' and reason in ('duplicate', 'duplicate-file', 'beneficiary-changed')) stored;
create index payouts_awaiting_release on payouts (merchant_id, payout_id) where awaits_release;

-- Down Migration
drop index payouts_awaiting_release;
alter table payouts drop column awaits_release;
drop table holds;
alter table batches drop constraint batches_pkey, add primary key (merchant_id, batch_id, file_hash);
alter table payout_commands add column beneficiary_hash bytea not null default '';
update payout_commands c set beneficiary_hash = p.beneficiary_hash
from payments p where p.merchant_id = c.merchant_id and p.payout_id = c.payout_id;
alter table payout_commands alter column beneficiary_hash drop default;
drop table beneficiary_payments, payments;
