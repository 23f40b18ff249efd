import type { Instant } from '../../domain/instant.ts'
import { sql } from '../../platform/postgres/postgres.ts'

/** A gateway that mixed answers up within the last day, and the latest question. `orderNo` null: about the balance. */
export type MixedLately = { baseUrl: string; merchantId: string; orderNo: string | null; mixedUntil: Instant }

export const mixedLately = sql<object, MixedLately>`
  select base_url, merchant_id, order_no, mixed_until from mixed_answers
  where mixed_until > now() - interval '1 day' order by base_url`
