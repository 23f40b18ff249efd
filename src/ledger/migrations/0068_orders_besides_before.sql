-- Up Migration
-- Older code: does not work

-- Of open payouts, what 0067 did not derive: an anomaly tells of an order besides that of the latest attempt. Older code sets the
-- flag without the sign of life that it is.
update payouts p set order_besides = true, order_shown = true
where p.order_besides or (
  p.state in ('held', 'queued', 'submitting', 'unknown', 'processing', 'review')
  and exists (select from anomalies a
              where a.merchant_id = p.merchant_id and a.payout_id = p.payout_id
                and a.kind in ('order-id-mismatch', 'other-account') and a.acknowledged_at is null)
  -- A person who sent it again named who ruled the order out.
  and p.reason is distinct from 'resent'
);
alter table payouts add constraint order_besides_is_shown check (order_shown or not order_besides) not valid;
update compatibility set oldest = '0068_orders_besides_before';

-- Down Migration
update compatibility set oldest = '0067_order_besides';
alter table payouts drop constraint order_besides_is_shown;
