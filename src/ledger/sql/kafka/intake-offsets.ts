import type { Standing } from '../../../platform/kafka/offsets.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

/** The position of intake in each partition of a topic. */
export const intakeOffsets = sql<{ topic: string }, Standing & { partition: number }>`
  select partition, next_offset as offset, log_id from intake_offsets where topic = ${'topic'}`

/** How many commands of these merchants in a topic wait in the ledger for their merchant's locks. */
export const countWaiting = sql<{ topic: string; merchantIds: string[] }, { count: bigint }>`
  select count(*) as count from waiting_commands where merchant_id = any(${'merchantIds'}) and topic = ${'topic'}`
