-- Up Migration
-- Older code: works
-- No transaction

set lock_timeout = 0;
drop index concurrently if exists payments_of_payout;
create index concurrently payments_of_payout on payments (merchant_id, payout_id);
reset lock_timeout;

-- Payments whose payout had ended and then changed, or of which payoutd had to ask what a callback said: open_from in payments
-- may have passed over them, so a later payment of the same is always compared with them.
create table if not exists reopened_payments (
  merchant_id text not null,
  beneficiary_hash bytea not null,
  amount bigint not null,
  pays_at timestamptz not null,
  batch text not null,
  payout_id text not null,
  primary key (merchant_id, beneficiary_hash, amount, pays_at, batch, payout_id)
);
alter table reopened_payments alter column merchant_id set (n_distinct = 2);

-- Triggers, so that no writer of a state, an anomaly or a question can forget it. The migration splits at the end of a line.
create or replace function keep_reopened(of_merchant text, of_payout text) returns void language sql as $$
  insert into reopened_payments
  select merchant_id, beneficiary_hash, amount, pays_at, batch, payout_id from payments
  where merchant_id = of_merchant and payout_id = of_payout
  on conflict do nothing
$$;
create or replace function keep_reopened_payout() returns trigger language plpgsql as $$
  begin perform keep_reopened(new.merchant_id, new.payout_id); return null; end
$$;
create or replace function keep_doubted_payout() returns trigger language plpgsql as $$
  begin
    perform keep_reopened(merchant_id, payout_id) from payouts
    where merchant_id = new.merchant_id and order_no = new.order_no and state <> 'paid'; return null; end
$$;
create or replace trigger reopened after update of state, said_otherwise on payouts for each row
  when (old.state in ('paid', 'failed', 'rejected', 'cancelled')
    and (old.state, old.said_otherwise) is distinct from (new.state, new.said_otherwise))
  execute function keep_reopened_payout();
create or replace trigger doubted after insert on lost_callbacks for each row
  when (new.kind = 'payout') execute function keep_doubted_payout();

select keep_reopened(merchant_id, payout_id) from payouts where said_otherwise is not null;
select keep_reopened(p.merchant_id, p.payout_id)
from lost_callbacks l join payouts p using (merchant_id, order_no) where l.kind = 'payout' and p.state <> 'paid';

-- Down Migration
drop trigger doubted on lost_callbacks;
drop trigger reopened on payouts;
drop function keep_doubted_payout();
drop function keep_reopened_payout();
drop function keep_reopened(text, text);
drop table reopened_payments;
drop index payments_of_payout;
