import type { EvidenceSource } from '../../domain/evidence.ts'
import type { Scrubbed } from '../../domain/mask.ts'
import { COMMANDS_ASK_DAYS } from '../../messages/topics.ts'
import { sql } from '../../platform/postgres/postgres.ts'

/** For so long at least a cancellation is remembered that came before what it is about. */
export const CANCELS_KEPT_DAYS = COMMANDS_ASK_DAYS

export type EarlyCancelSource = Extract<EvidenceSource, 'COMMAND' | 'OPERATOR'>

/** Of payouts that nobody has asked for yet. The first one counts and is a row, for as long as if it came with the latest. */
export const rememberCancels = sql<{
  merchantIds: string[]
  payoutIds: string[]
  whys: Scrubbed[]
  source: EarlyCancelSource
}>`
  insert into early_cancels (merchant_id, payout_id, why, source)
  select distinct on (merchant_id, payout_id) merchant_id, payout_id, why, ${'source'}
  from unnest(${'merchantIds'}::text[], ${'payoutIds'}::text[], ${'whys'}::text[])
    with ordinality as c (merchant_id, payout_id, why, place)
  order by merchant_id, payout_id, place
  on conflict (merchant_id, payout_id) do update set at = now()`

/**
 * Lets a cancellation, or what a recovery keeps of what was published, and the payout that it is about see each other, when
 * they come in the same moment by two partitions, or by a command: whoever cancels or keeps is alone (`alone`), those who
 * ask for payouts are so together. In the order given.
 */
export const lockForCancels = sql<{ merchantIds: string[]; alone: boolean[] }>`
  select case when alone then pg_advisory_xact_lock(key) else pg_advisory_xact_lock_shared(key) end
  from (
    select hashtextextended('cancels of ' || merchant_id, 0) as key, alone
    from unnest(${'merchantIds'}::text[], ${'alone'}::bool[]) as m (merchant_id, alone)
  ) merchants`

type CancelledBatch = { merchantId: string; batchId: string }

/** The latest one counts, from now on. */
export const rememberBatch = sql<CancelledBatch & { why: Scrubbed }>`
  insert into cancelled_batches (merchant_id, batch_id, why) values (${'merchantId'}, ${'batchId'}, ${'why'})
  on conflict (merchant_id, batch_id) do update set why = excluded.why, at = now()`

/** Those of these batches that were cancelled. */
export const cancelledBatches = sql<
  { merchantIds: string[]; batchIds: (string | null)[] },
  CancelledBatch & { why: Scrubbed }
>`
  select merchant_id, batch_id, why from cancelled_batches
  where (merchant_id, batch_id) in (select * from unnest(${'merchantIds'}::text[], ${'batchIds'}::text[]))`

/**
 * Some of those that nothing came for, but for what somebody holds. None while commands are set aside, nor for as long again
 * after dead letters were replayed, as some may have become dead letters once more.
 */
export const sweepCancels = sql<{ days: number; limit: number }, { swept: number }>`
  with open as (
    select exists (select from waiting_commands)
      or exists (select from dlq_replays where at >= now() - ${'days'}::int * interval '1 day') as asks
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
