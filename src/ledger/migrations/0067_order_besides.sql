-- Up Migration
-- Older code: does not work

-- The gateway showed an order besides that of the latest attempt, which only a payment or a person settles. Older code takes the
-- failure of one of them for the end of the payout.
alter table payouts add column order_besides boolean not null default false;
update compatibility set oldest = '0067_order_besides';

-- Down Migration
update compatibility set oldest = '0065_orders_shown_before';
alter table payouts drop column order_besides;
