-- Up Migration
-- Older code: does not work

-- Of open payouts: the gateway has shown an order, so some attempt sent it. Where no account is known, it may be any. An older
-- recovery forgot that.
update payouts set doubted = true, absence_confirmed = false
where account_id is null and not doubted and not turned_away
  and order_shown and state in ('held', 'queued', 'review');
alter table payouts add constraint shown_was_sent check (
  account_id is not null or doubted or turned_away or not order_shown or state not in ('held', 'queued', 'review')
) not valid;
update compatibility set oldest = '0071_what_was_sent';

-- Down Migration
update compatibility set oldest = '0068_orders_besides_before';
alter table payouts drop constraint shown_was_sent;
