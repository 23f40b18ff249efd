-- Up Migration

-- When it became paid; null: it is not, or that was not kept here then, and its history tells. In no index, so that no more
-- updates leave their page (docs/decisions/0004).
alter table payouts add column paid_at timestamptz;

-- Down Migration
alter table payouts drop column paid_at;
