-- Up Migration

-- What people did, by the commands they gave. Only ever added to: the role that runs payoutd may not change or delete
-- a row (src/ledger/grants.ts). The database itself says which role connected from where.
create table operator_acts (
  act_id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  acted_by text not null,                 -- who decides, as --by says
  reason text not null,                   -- bank details masked
  command text not null,                  -- without its arguments, such as "payout cancel"
  os_user text not null,
  host text not null,
  database_role text not null default session_user,
  client_address inet default inet_client_addr(),   -- null: over a socket
  merchant_id text,                       -- null: it is about no merchant
  subjects text[] not null,               -- payouts, anomalies, dead letters, keys, orders: what it was done to
  before jsonb,                           -- both hold what the act changed, and no bank details
  after jsonb
);

-- Down Migration
drop table operator_acts;
