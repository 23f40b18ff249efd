-- Up Migration

-- The gateway said "later" to an attempt: it may keep an order of it that failed, beside that of a later attempt.
alter table payouts add column turned_away boolean not null default false;

-- Nobody kept which of those that were sent more than once, or are about to be, it said that to.
update payouts set turned_away = true
where coalesce(due_at is not null or in_review, false) and (attempt > 1 or attempt = 1 and state in ('held', 'queued'));

-- Down Migration
alter table payouts drop column turned_away;
