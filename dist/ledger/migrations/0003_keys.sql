-- Up Migration

-- What tells the keys apart that were once in use, so that no process works with others.
create table key_proofs (
  key_id smallint primary key,            -- of ENCRYPTION_KEYS, 1 to 255; 0: FINGERPRINT_KEY
  proof bytea not null                    -- an empty text sealed with it; of FINGERPRINT_KEY a keyed hash
);

-- Held because no key opened its bank details (dispatch/sealed.ts).
alter table payouts
  add column awaits_key boolean generated always as (state = 'held' and reason = 'details-sealed') stored;
create index payouts_awaiting_key on payouts (merchant_id, payout_id) where awaits_key;

-- Down Migration
drop index payouts_awaiting_key;
alter table payouts drop column awaits_key;
drop table key_proofs;
