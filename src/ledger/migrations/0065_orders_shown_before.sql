-- Up Migration
-- Older code: does not work

-- Of open payouts, what 0064 did not derive: the gateway had or has the order, as their history and the anomalies about signed
-- reports tell. Older code takes a "not found" after such a report for proof that nothing was paid, and sends again.
update payouts p set order_shown = true
where p.state in ('held', 'queued', 'submitting', 'unknown', 'processing', 'review') and (
  (p.state = 'processing')
  or exists (select from history h
             where h.merchant_id = p.merchant_id and h.payout_id = p.payout_id
               and (h.to_state = 'processing' or (h.to_state = 'unknown' and h.reason = 'duplicate')))
  or exists (select from anomalies a
             where a.merchant_id = p.merchant_id and a.payout_id = p.payout_id
               and a.source in ('CALLBACK', 'QUERY') and a.kind <> 'ambiguous-callback')
);
update compatibility set oldest = '0065_orders_shown_before';

-- Down Migration
update compatibility set oldest = '0062_said_otherwise';
