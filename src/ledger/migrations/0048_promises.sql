-- Up Migration

-- On whose word a payout is sent again, so that the claim can tell a promise of the gateway that was taken back since.
alter table payouts add column absence_confirmed boolean not null default false;
-- The retCodes for which its attempts were taken as turned away, one in each line. Null: there was none, or before this was kept.
alter table payouts add column later_codes text;

-- Down Migration
alter table payouts drop column later_codes;
alter table payouts drop column absence_confirmed;
