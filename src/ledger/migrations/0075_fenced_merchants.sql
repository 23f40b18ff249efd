-- Up Migration
-- Older code: works

-- Every transaction that stores evidence asks who is fenced, which is nearly always nobody.
create index merchants_fenced on merchants (merchant_id) where recovering_since is not null;

-- Down Migration
drop index merchants_fenced;
