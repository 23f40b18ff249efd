-- Up Migration
-- Older code: works

-- The gateway showed that it has or had an order, in words that settled nothing: that it is not found later proves no absence.
-- Older code takes absence for proved, as it did.
alter table payouts add column order_shown boolean not null default false;
alter table payins add column order_shown boolean not null default false;

-- Down Migration
alter table payouts drop column order_shown;
alter table payins drop column order_shown;
