import { sql } from '../../platform/postgres.ts'

export const intakePlaces = sql<{ topic: string }, { partition: number; nextOffset: bigint }>`
  select partition, next_offset from intake_offsets where topic = ${'topic'}`
