-- Up Migration
-- Older code: works

-- Under which leader's epoch the command before an offset was written, by which Kafka tells whether it has lost that since. It
-- is about the offset beside it, which older code moves alone.
alter table intake_offsets add column leader_epoch int, add column leader_epoch_at bigint;

-- Down Migration
alter table intake_offsets drop column leader_epoch, drop column leader_epoch_at;
