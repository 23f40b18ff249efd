-- Up Migration
-- Older code: works

-- Where a partition stood when it was last begun at an earlier offset or in another log, because Kafka had lost a part of
-- it or the topic was made again: whoever had read it up to there knows that the ledger has forgotten nothing.
alter table intake_offsets add column left_offset bigint, add column left_log_id text;

-- Down Migration
alter table intake_offsets drop column left_offset, drop column left_log_id;
