-- Up Migration

-- A ledger has few merchants and very many payouts. Statistics made while it had one payout say that a merchant's id
-- finds one row, as an order number does; a statement planned on them reads all rows of the merchant, by whatever index
-- begins with its id. How many merchants to count on, wherever statistics are made from now on:
do $$
declare
  about_merchants regclass;
begin
  for about_merchants in
    select t.oid
    from pg_attribute a join pg_class t on t.oid = a.attrelid
    where a.attname = 'merchant_id' and not a.attisdropped and t.relkind = 'r'
      and t.relnamespace = current_schema()::regnamespace and t.relname <> 'merchants'
  loop
    execute format('alter table %s alter column merchant_id set (n_distinct = 2)', about_merchants);
  end loop;
end $$;

-- As it was, and so for the months to come.
create or replace function keep_history(keep_months integer) returns boolean
language plpgsql security definer
set timezone = 'UTC' set lock_timeout = '100ms' as $$
declare
  month timestamptz;
  name text;
begin
  if not pg_try_advisory_xact_lock(hashtext('keep_history')) then
    return true;
  end if;
  for ahead in 0..2 loop
    month := date_trunc('month', now()) + ahead * interval '1 month';
    name := 'history_' || to_char(month, 'YYYY_MM');
    continue when to_regclass(quote_ident(name)) is not null;
    execute format('create table %I (like history including all)', name);
    execute format('alter table %I alter column merchant_id set (n_distinct = 2)', name);
    execute format(
      'with moved as (delete from history_default where at >= %1$L and at < %2$L returning *)
       insert into %3$I select * from moved', month, month + interval '1 month', name);
    execute format('alter table history attach partition %I for values from (%L) to (%L)',
                   name, month, month + interval '1 month');
  end loop;
  select relname into name from pg_inherits join pg_class on pg_class.oid = inhrelid
  where inhparent = 'history'::regclass and relname ~ '^history_\d{4}_\d{2}$'
    and to_date(right(relname, 7), 'YYYY_MM') + interval '1 month'
        < date_trunc('month', now()) - keep_months * interval '1 month'
  order by relname limit 1;
  if found then
    execute format('drop table %I', name);
  end if;
  return found;
exception when lock_not_available then
  return true;
end
$$;
-- Its caller's temporary tables must not be taken for ours.
do $$
begin
  execute format('alter function keep_history(integer) set search_path = %I, pg_temp', current_schema());
end
$$;

-- Down Migration
create or replace function keep_history(keep_months integer) returns boolean
language plpgsql security definer
set timezone = 'UTC' set lock_timeout = '100ms' as $$
declare
  month timestamptz;
  name text;
begin
  if not pg_try_advisory_xact_lock(hashtext('keep_history')) then
    return true;
  end if;
  for ahead in 0..2 loop
    month := date_trunc('month', now()) + ahead * interval '1 month';
    name := 'history_' || to_char(month, 'YYYY_MM');
    continue when to_regclass(quote_ident(name)) is not null;
    execute format('create table %I (like history including all)', name);
    execute format(
      'with moved as (delete from history_default where at >= %1$L and at < %2$L returning *)
       insert into %3$I select * from moved', month, month + interval '1 month', name);
    execute format('alter table history attach partition %I for values from (%L) to (%L)',
                   name, month, month + interval '1 month');
  end loop;
  select relname into name from pg_inherits join pg_class on pg_class.oid = inhrelid
  where inhparent = 'history'::regclass and relname ~ '^history_\d{4}_\d{2}$'
    and to_date(right(relname, 7), 'YYYY_MM') + interval '1 month'
        < date_trunc('month', now()) - keep_months * interval '1 month'
  order by relname limit 1;
  if found then
    execute format('drop table %I', name);
  end if;
  return found;
exception when lock_not_available then
  return true;
end
$$;
-- Its caller's temporary tables must not be taken for ours.
do $$
begin
  execute format('alter function keep_history(integer) set search_path = %I, pg_temp', current_schema());
end
$$;
do $$
declare
  about_merchants regclass;
begin
  for about_merchants in
    select t.oid
    from pg_attribute a join pg_class t on t.oid = a.attrelid
    where a.attname = 'merchant_id' and not a.attisdropped and t.relkind = 'r'
      and t.relnamespace = current_schema()::regnamespace
  loop
    execute format('alter table %s alter column merchant_id reset (n_distinct)', about_merchants);
  end loop;
end $$;
