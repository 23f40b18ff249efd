-- Up Migration

-- Batches that a person cancelled: what comes of them later is cancelled as it comes. A row goes after a month.
create table cancelled_batches (
  merchant_id text not null,
  batch_id text not null,
  why text not null,                      -- who cancelled it, and their reason
  at timestamptz not null default now(),
  primary key (merchant_id, batch_id)
);

-- Down Migration
drop table cancelled_batches;
