-- Up Migration
-- Older code: works

-- When a transition happened, as its messages say: it tells the transition from one of another ledger under the same version. Null:
-- nothing was published about it, or not by code that kept this.
alter table history add column published_at timestamptz;

-- Ledgers that were lost one after another may have published different things under one version.
alter table published_messages
  drop constraint published_messages_pkey,
  add primary key (merchant_id, payout_id, version, is_result, at);

-- Down Migration
delete from published_messages a using published_messages b
where (a.merchant_id, a.payout_id, a.version, a.is_result) = (b.merchant_id, b.payout_id, b.version, b.is_result) and a.at > b.at;
alter table published_messages
  drop constraint published_messages_pkey,
  add primary key (merchant_id, payout_id, version, is_result);
alter table history drop column published_at;
