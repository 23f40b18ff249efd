-- Up Migration

-- The same evidence, or the same anomaly, again and again is one row that counts.
alter table history
  add column times integer not null default 1,
  add column last_at timestamptz;         -- when it was last heard again; null: never
alter table anomalies
  add column times integer not null default 1,
  add column last_at timestamptz;

-- Makes the partitions of history for this month and the next two, and drops one that ended more than `keep_months` ago
-- (null: none). Returns whether something is left for another call. To be called now and then by every process.
--
-- Nobody waits for it longer than its lock_timeout: whatever it cannot lock in that time, because somebody reads the
-- history, it leaves for another call. A partition is made first and then attached: that locks the default partition
-- and no insert into any other. What the default partition holds of that month moves along.
--
-- Whoever calls it needs no right to make tables: it acts as its owner.
drop function keep_history(integer);
create function keep_history(keep_months integer) returns boolean
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

-- Down Migration
drop function keep_history(integer);
create function keep_history(keep_months integer) returns void language plpgsql as $$
declare
  month timestamptz;
  old text;
begin
  perform pg_advisory_xact_lock(hashtext('keep_history'));
  for ahead in 0..2 loop
    month := date_trunc('month', now()) + ahead * interval '1 month';
    execute format('create table if not exists %I partition of history for values from (%L) to (%L)',
                   'history_' || to_char(month, 'YYYY_MM'), month, month + interval '1 month');
  end loop;
  for old in
    select relname from pg_inherits join pg_class on pg_class.oid = inhrelid
    where inhparent = 'history'::regclass and relname ~ '^history_\d{4}_\d{2}$'
      and to_date(right(relname, 7), 'YYYY_MM') + interval '1 month'
          < date_trunc('month', now()) - keep_months * interval '1 month'
  loop
    execute format('drop table %I', old);
  end loop;
end
$$;
alter table anomalies drop column times, drop column last_at;
alter table history drop column times, drop column last_at;
