-- Up Migration

-- When the gateway was last asked about it; null: never, or that was not kept then. In no index, so that no more updates
-- leave their page (docs/decisions/0004).
alter table payouts add column asked_at timestamptz;
alter table payins add column asked_at timestamptz;

-- Down Migration
alter table payins drop column asked_at;
alter table payouts drop column asked_at;
