import { sql } from "../../platform/postgres.js";
export const standing = sql `
  select next_offset as offset, log_id from intake_offsets
  where topic = ${'topic'} and partition = ${'partition'}`;
/**
 * Locks where a partition stands. Two consumers that both believe to own it take turns here, and the
 * second finds that its records are stored already.
 */
export const lockStanding = sql `
  select next_offset as offset, log_id from intake_offsets
  where topic = ${'topic'} and partition = ${'partition'} for update`;
export const moveOffset = sql `
  update intake_offsets set next_offset = ${'nextOffset'} where topic = ${'topic'} and partition = ${'partition'}`;
/** Sets where a partition stands, unless it stands elsewhere than `before` by now: then the answer is empty. */
export const beginAt = sql `
  insert into intake_offsets as stands (topic, partition, next_offset, log_id)
  values (${'topic'}, ${'partition'}, ${'offset'}, ${'logId'})
  on conflict (topic, partition) do update set next_offset = excluded.next_offset, log_id = excluded.log_id
  where stands.next_offset = ${'before'}::bigint and stands.log_id is not distinct from ${'beforeLogId'}::text
  returning next_offset as offset`;
