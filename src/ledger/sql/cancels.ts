import type { EvidenceSource } from '../../domain/evidence.ts'
import type { PayoutKey } from '../../domain/identifiers.ts'
import type { Scrubbed } from '../../domain/mask.ts'
import { COMMANDS_ASK_DAYS } from '../../messages/topics.ts'
import { sql } from '../../platform/postgres/postgres.ts'

/** How long, at least, payoutd remembers a cancellation that came before its payout or batch. */
export const CANCELS_KEPT_DAYS = COMMANDS_ASK_DAYS

export type EarlyCancelSource = Extract<EvidenceSource, 'COMMAND' | 'OPERATOR'>

/** Remembers cancellations of payouts not asked for yet. The first of a payout counts; each later one renews its time. */
export const rememberCancels = sql<{
  cancels: readonly (PayoutKey & { why: Scrubbed })[]
  source: EarlyCancelSource
}>`
  insert into early_cancels (merchant_id, payout_id, why, source)
  select distinct on (merchant_id, payout_id) merchant_id, payout_id, why, ${'source'}
  from ${{
    rows: 'cancels',
    columns: { merchantId: 'text', payoutId: 'text', why: 'text' },
    ordered: true,
  }} cancels
  order by merchant_id, payout_id, n
  on conflict (merchant_id, payout_id) do update set at = now()`

const keysOf = sql<{ merchantIds: string[] }>`
  select hashtextextended('cancels of ' || merchant_id, 0) as key
  from (select distinct unnest(${'merchantIds'}::text[]) collate "C" as merchant_id order by 1) merchants`

/**
 * Makes a cancellation by a person (or a published message that a recovery keeps) and its payout see each other when they come at
 * the same moment. Whoever cancels or keeps has the lock alone; transactions of intake, which take turns, share it.
 */
export const lockForCancels = sql<{ merchantIds: string[] }>`
  select pg_advisory_xact_lock(key) from (${keysOf}) keys`
export const shareLockForCancels = sql<{ merchantIds: string[] }>`
  select pg_advisory_xact_lock_shared(key) from (${keysOf}) keys`

type CancelledBatch = { merchantId: string; batchId: string }

/** The latest cancellation of a batch counts, and renews its time. */
export const rememberBatch = sql<CancelledBatch & { why: Scrubbed }>`
  insert into cancelled_batches (merchant_id, batch_id, why) values (${'merchantId'}, ${'batchId'}, ${'why'})
  on conflict (merchant_id, batch_id) do update set why = excluded.why, at = now()`

/** The cancelled ones of these batches. */
export const cancelledBatches = sql<
  { batches: readonly { merchantId: string; batchId: string | null }[] },
  CancelledBatch & { why: Scrubbed }
>`
  select merchant_id, batch_id, why from cancelled_batches
  where (merchant_id, batch_id) in ${{ rows: 'batches', columns: { merchantId: 'text', batchId: 'text' } }}`

/**
 * Deletes some cancellations that no command came for, except rows that another transaction has locked. Deletes none while
 * commands are set aside, nor for as many days after a replay of dead letters: some may have become dead letters again.
 */
export const sweepCancels = sql<{ days: number; limit: number }, { swept: number }>`
  with open as (
    select exists (select from waiting_commands)
      or exists (select from letter_replays where at >= now() - ${'days'}::int * interval '1 day') as asks
  ), batches as (
    delete from cancelled_batches where ctid = any (array(
      select ctid from cancelled_batches where at < now() - ${'days'}::int * interval '1 day' and not (select asks from open)
      limit ${'limit'} for update skip locked
    )) returning 1
  ), cancels as (
    delete from early_cancels where ctid = any (array(
      select ctid from early_cancels where at < now() - ${'days'}::int * interval '1 day' and not (select asks from open)
      limit ${'limit'} for update skip locked
    )) returning 1
  )
  select ((select count(*) from batches) + (select count(*) from cancels))::int as swept`
