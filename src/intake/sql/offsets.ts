import { sql } from '../../platform/postgres.ts'

type Partition = { topic: string; partition: number }

export const nextOffset = sql<Partition, { nextOffset: bigint }>`
  select next_offset from intake_offsets where topic = ${'topic'} and partition = ${'partition'}`

/**
 * Locks where a partition stands. Two consumers that both believe to own it take turns here, and the
 * second finds that its records are stored already.
 */
export const lockOffset = sql<Partition, { nextOffset: bigint }>`
  insert into intake_offsets (topic, partition, next_offset) values (${'topic'}, ${'partition'}, 0)
  on conflict (topic, partition) do update set next_offset = intake_offsets.next_offset
  returning next_offset`

export const moveOffset = sql<Partition & { nextOffset: bigint }>`
  update intake_offsets set next_offset = ${'nextOffset'} where topic = ${'topic'} and partition = ${'partition'}`
