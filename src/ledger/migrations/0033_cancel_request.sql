-- Up Migration

-- Who asked to cancel it and why, while that could not be decided: it must not be sent (again). Null: nobody did.
alter table payouts add column cancel_request text;

-- These were held for it until the end of a recovery. Who asked, and why, is in their history.
update payouts set cancel_request = 'asked for while the merchant was fenced'
where reason = 'cancel-requested' and state = 'held';

-- Down Migration
alter table payouts drop column cancel_request;
