import type { Instant } from '../../domain/instant.ts'
import { sql } from '../../platform/postgres/postgres.ts'

export type KeptOf = { merchantId: string; count: number; oldestAt: Instant }

/** How many orders of a merchant payoutd still has to ask the gateway about, because it lost a callback. */
export type LostOf = { merchantId: string; count: number }

export const lostByMerchant = sql<object, LostOf>`
  select merchant_id, count(*)::int as count from lost_callbacks group by 1 order by 1`

/** Kept callbacks, by merchant. */
export const keptByMerchant = sql<object, KeptOf>`
  select merchant_id, count(*)::int as count, min(at) as oldest_at from kept_callbacks group by 1 order by 1`
