-- Up Migration
-- Older code: works

-- A UTR recovery, or a sign of a payment, has a payin asked about as often as the dialect has waits, also past its end. Older
-- code asks as it did.
alter table payins add column asked_anew boolean not null default false;

-- Down Migration
alter table payins drop column asked_anew;
