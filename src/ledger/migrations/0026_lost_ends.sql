-- Up Migration

-- What proves a published end that the database lost, and whose result is in no topic: it is published once the gateway
-- was asked. Null: there is none.
alter table recovered_payouts add column untold text;

-- Down Migration
alter table recovered_payouts drop column untold;
