/** Goes up with every change of the schema: a state file of another version is refused by name. */
export const SCHEMA_VERSION = 3

/**
 * The state file. `orders` are payouts; ids of orders, payins and payments come from one sequence.
 * `accounts.balance` is the sum of the account's entries, kept so that a start need not read them all; the
 * inspection routes sum the entries themselves.
 */
export const SCHEMA = `
create table merchants (
  id integer primary key,
  mch_id text not null unique,
  key text not null,
  older_keys text not null,
  dialect text
) strict;

create table orders (
  id integer primary key,
  merchant_id integer not null references merchants,
  mch_order_no text not null,
  amount integer not null,
  fee integer not null,
  account_masked text not null,
  payee text not null,
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
  callbacks_acknowledged integer not null
) strict;
create index orders_number on orders (merchant_id, mch_order_no);

create table tries (
  merchant_id integer not null references merchants,
  mch_order_no text not null,
  tries integer not null,
  primary key (merchant_id, mch_order_no)
) strict, without rowid;

create table payins (
  id integer primary key,
  merchant_id integer not null references merchants,
  mch_order_no text not null,
  amount integer not null,
  fee integer not null,
  notify_url text not null,
  return_url text,
  created_at integer not null,
  expires_at integer not null,
  status integer not null,
  error_message text,
  utr text,
  paid_at integer,
  available_at integer,
  callback_at integer,
  callback_tries integer not null,
  callbacks_sent integer not null,
  notify_status integer not null,
  unique (merchant_id, mch_order_no)
) strict;

create table payments (
  id integer primary key,
  merchant_id integer not null references merchants,
  utr text not null unique,
  amount integer not null,
  made_at integer not null,
  made_for integer not null references payins,
  claimed_by integer references payins
) strict;
create index payments_made_for on payments (made_for);

create table deliveries (
  order_id integer not null,
  attempt integer not null,
  at integer not null,
  http_status integer,
  answer text not null,
  error text,
  duration_ms integer not null,
  primary key (order_id, attempt)
) strict, without rowid;

create table accounts (
  id integer primary key,
  merchant_id integer references merchants,
  name text not null,
  balance integer not null,
  unique (merchant_id, name)
) strict;

create table movements (
  id integer primary key,
  kind text not null,
  merchant_id integer not null references merchants,
  order_id integer
) strict;

create table entries (
  movement_id integer not null references movements,
  account_id integer not null references accounts,
  amount integer not null
) strict;
`
