import type { Instant } from '../../domain/instant.ts'
import { sql } from '../../platform/postgres/postgres.ts'

/** A gateway that mixed answers up a moment ago, and a recent question. `orderNo` null: about the balance. */
export type MixedNow = { baseUrl: string; merchantId: string; orderNo: string | null; mixedUntil: Instant }

export const mixedNow = sql<object, MixedNow>`
  select base_url, merchant_id, order_no, mixed_until from mixed_answers where mixed_until > now() order by base_url`
