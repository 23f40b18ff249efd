-- Up Migration
-- Older code: works

-- The settings of every account by which the recovery that is under way asks: what it was answered by others counts no
-- more. Null: none began, or by a payoutd that did not keep it.
alter table merchants add column recovery_settings text;

-- Down Migration
alter table merchants drop column recovery_settings;
