import type { Standing } from '../../../platform/kafka/offsets.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

type PartitionKey = { topic: string; partition: number }

/** `left…`: the position before the partition was begun elsewhere because Kafka had lost records; null: it never was. */
export type Stands = Standing & { leftOffset: bigint | null; leftLogId: string | null }

export const standing = sql<PartitionKey, Stands>`
  select next_offset as offset, log_id, left_offset, left_log_id, leader_epoch as epoch from intake_offsets
  where topic = ${'topic'} and partition = ${'partition'}`

/**
 * Locks the positions of partitions. Two consumers that both believe that they own one take turns here, and the second finds its
 * records stored already.
 */
export const lockStanding = sql<{ partitions: readonly PartitionKey[] }, PartitionKey & Stands>`
  select topic, partition, next_offset as offset, log_id, left_offset, left_log_id, leader_epoch as epoch
  from intake_offsets
  where (topic, partition) in (
    select topic, partition from ${{ rows: 'partitions', columns: { topic: 'text', partition: 'int' } }} p
  )
  order by topic, partition for update`

/** `epoch`: see Standing. */
type Moved = PartitionKey & { nextOffset: bigint; epoch: number | null }

export const moveOffset = sql<{ moved: readonly Moved[] }>`
  update intake_offsets
  set next_offset = moved.next_offset, leader_epoch = moved.epoch
  from ${{
    rows: 'moved',
    columns: { topic: 'text', partition: 'int', nextOffset: 'bigint', epoch: 'int' },
  }} moved
  where intake_offsets.topic = moved.topic and intake_offsets.partition = moved.partition`

type Begun = PartitionKey & Standing & { before: bigint | null; beforeLogId: string | null }

/** Sets the position of a partition. Returns no row if the position is no longer `before`. */
export const beginAt = sql<Begun, { offset: bigint }>`
  insert into intake_offsets as stands (topic, partition, next_offset, log_id)
  values (${'topic'}, ${'partition'}, ${'offset'}, ${'logId'})
  on conflict (topic, partition) do update
  set next_offset = excluded.next_offset, log_id = excluded.log_id, leader_epoch = null,
      (left_offset, left_log_id) = (
        select case when moved then stands.next_offset else stands.left_offset end,
          case when moved then stands.log_id else stands.left_log_id end
        from (
          select excluded.next_offset < stands.next_offset or excluded.log_id is distinct from stands.log_id as moved
        ) moves
      )
  where stands.next_offset = ${'before'}::bigint and stands.log_id is not distinct from ${'beforeLogId'}::text
  returning next_offset as offset`
