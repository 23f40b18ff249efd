import type { Scrubbed } from '../../domain/mask.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import type { Pause } from '../../queries/sql/merchants.ts'

/** Waits for a claim under way: every later claim sees the pause. */
export const lockPause = sql<{ merchantId: string }, Pause | { pausedBy: null }>`
  select paused_by, paused_reason, paused_at from merchants where merchant_id = ${'merchantId'} for update`

/**
 * Works also for a merchant for which dispatch never ran. Dispatch then finds other settings than the empty hash, and begins as
 * usual. Dispatch may open the row in the same moment.
 */
export const setPause = sql<{ merchantId: string; by: string; reason: Scrubbed; feeEstimate: bigint }>`
  insert into merchants (merchant_id, settings_hash, fee_estimate, paused_by, paused_reason, paused_at)
  values (${'merchantId'}, '', ${'feeEstimate'}, ${'by'}, ${'reason'}, now())
  on conflict (merchant_id) do update
  set paused_by = excluded.paused_by, paused_reason = excluded.paused_reason, paused_at = excluded.paused_at`

export const clearPause = sql<{ merchantId: string }>`
  update merchants set paused_by = null, paused_reason = null, paused_at = null
  where merchant_id = ${'merchantId'}`
