-- Up Migration

-- What the gateway said of a refusal or a failure, while nobody has confirmed that nothing of the payout is alive.
alter table payouts add column refusal text;

-- It stood in the reason.
update payouts set refusal = substr(reason, length('refused: ') + 1), reason = 'refused'
where coalesce(due_at is not null or in_review, false) and state = 'unknown' and reason like 'refused: %';

-- Down Migration
update payouts set reason = 'refused: ' || refusal
where coalesce(due_at is not null or in_review, false) and state = 'unknown' and refusal is not null;
alter table payouts drop column refusal;
