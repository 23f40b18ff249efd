/**
 * The state file. `accounts.balance` is the sum of the account's entries, kept so that a start need not
 * read them all; the judge's books are added up from the entries themselves.
 */
export const SCHEMA = `
create table if not exists merchants (
  id integer primary key,
  mch_id text not null unique,
  key text not null
) strict;

create table if not exists orders (
  id integer primary key,
  merchant_id integer not null references merchants,
  mch_order_no text not null,
  amount integer not null,
  fee integer not null,
  account_masked text not null,
  notify_url text not null,
  letters text not null,
  becomes integer not null,
  accepted_at integer not null,
  settle_at integer not null,
  apply_calls integer not null,
  status integer not null,
  times_paid integer not null,
  letter integer not null,
  letter_tries integer not null,
  callback_at integer,
  callbacks_sent integer not null,
  callbacks_acknowledged integer not null,
  unique (merchant_id, mch_order_no)
) strict;

create table if not exists tries (
  merchant_id integer not null references merchants,
  mch_order_no text not null,
  tries integer not null,
  primary key (merchant_id, mch_order_no)
) strict, without rowid;

create table if not exists accounts (
  id integer primary key,
  merchant_id integer references merchants,
  name text not null,
  balance integer not null,
  unique (merchant_id, name)
) strict;

create table if not exists movements (
  id integer primary key,
  kind text not null,
  merchant_id integer not null references merchants,
  order_id integer references orders
) strict;

create table if not exists entries (
  movement_id integer not null references movements,
  account_id integer not null references accounts,
  amount integer not null
) strict;
`
