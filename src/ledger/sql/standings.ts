import type { Standing } from '../../platform/kafka/places.ts'
import { sql } from '../../platform/postgres.ts'

/** Where intake stands in each partition of a topic. */
export const standings = sql<{ topic: string }, Standing & { partition: number }>`
  select partition, next_offset as offset, log_id from intake_offsets where topic = ${'topic'}`
