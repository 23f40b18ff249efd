import type { Instant } from '../../domain/instant.ts'
import { sql } from '../../platform/postgres/postgres.ts'

export type KeptOf = { merchantId: string; count: number; oldestAt: Instant }

/** How many orders of a merchant the gateway is still to be asked about, because a callback was lost. */
export type LostOf = { merchantId: string; count: number }

export const lostByMerchant = sql<object, LostOf>`
  select merchant_id, count(*)::int as count from lost_callbacks group by 1 order by 1`

/** Callbacks that are kept, by merchant. */
export const keptByMerchant = sql<object, KeptOf>`
  select merchant_id, count(*)::int as count, min(at) as oldest_at from kept_callbacks group by 1 order by 1`
