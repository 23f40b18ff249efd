import type { PayoutKey } from '../../../domain/identifiers.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

type PartitionOfWaiting = { topic: string; partition: number }

/** For the rest of the transaction, a statement fails if it waits for a lock any longer. */
export const boundLockWaits = sql<{ ms: string }>`select set_config('lock_timeout', ${'ms'}, true)`

export const markApart = sql<object>`savepoint apart`
export const backToMark = sql<object>`rollback to savepoint apart`

type WaitingPartition = PartitionOfWaiting & { merchantId: string }

/** Those with earlier commands of the partition waiting. Run it under the locks of the partitions. */
export const merchantsWaiting = sql<{ wanted: readonly WaitingPartition[] }, WaitingPartition>`
  select merchant_id, topic, partition
  from ${{ rows: 'wanted', columns: { merchantId: 'text', topic: 'text', partition: 'int' } }} wanted
  where exists (
    select from waiting_commands w
    where w.merchant_id = wanted.merchant_id and w.topic = wanted.topic and w.partition = wanted.partition
  )`

/** `cancels`: the payoutId that it cancels; null: it cancels nothing. */
type NewWaiting = Omit<WaitingRow, 'position' | 'logId'> & { merchantId: string; cancels: string | null }

/** Keeps the order of the rows. */
export const keepWaiting = sql<
  PartitionOfWaiting & { logId: string | null; commands: readonly NewWaiting[] }
>`
  insert into waiting_commands (merchant_id, topic, partition, log_id, record_offset, origin, sealed, cancels)
  select merchant_id, ${'topic'}, ${'partition'}, ${'logId'}, record_offset, origin, sealed, cancels
  from ${{
    rows: 'commands',
    columns: {
      ...{ merchantId: 'text', recordOffset: 'bigint', origin: 'text', sealed: 'bytea' },
      cancels: 'text',
    },
    ordered: true,
  }} w
  order by n`

/** Locks those of these payouts that nobody else has locked. */
export const lockFree = sql<{ payouts: readonly PayoutKey[] }, PayoutKey>`
  select p.merchant_id, p.payout_id
  from ${{ rows: 'payouts', columns: { merchantId: 'text', payoutId: 'text' } }} wanted
  cross join lateral (
    select merchant_id, payout_id from payouts
    where payouts.merchant_id = wanted.merchant_id and payouts.payout_id = wanted.payout_id
    for update skip locked
  ) p`

/** Each merchant with waiting commands, and the first partition that has some. */
export const whoWaits = sql<object, WaitingPartition>`
  with recursive waiting as (
    (select merchant_id, topic, partition from waiting_commands
     order by merchant_id, topic, partition, position limit 1)
    union all
    select next.* from waiting
    cross join lateral (
      select w.merchant_id, w.topic, w.partition from waiting_commands w
      where w.merchant_id > waiting.merchant_id
      order by w.merchant_id, w.topic, w.partition, w.position limit 1
    ) next
  )
  select * from waiting`

export type WaitingRow = {
  position: bigint
  logId: string | null
  recordOffset: bigint
  origin: string
  sealed: Buffer
}

/** The first ones, until they are `bytes` together: at least one. */
export const firstWaiting = sql<WaitingPartition & { limit: number; bytes: number }, WaitingRow>`
  select position, log_id, record_offset, origin, sealed
  from (
    select *, sum(octet_length(sealed)) over (order by position) - octet_length(sealed) as before
    from (
      select position, log_id, record_offset, origin, sealed from waiting_commands
      where merchant_id = ${'merchantId'} and topic = ${'topic'} and partition = ${'partition'}
      order by position
      limit ${'limit'}
    ) first
  ) counted
  where before < ${'bytes'}
  order by position`

/**
 * Waits for whoever changes one up to this position, as a rotation of keys does: what takes them would leave that one out, and take
 * those after it.
 */
export const lockWaiting = sql<WaitingPartition & { upTo: bigint }>`
  select from waiting_commands
  where merchant_id = ${'merchantId'} and topic = ${'topic'} and partition = ${'partition'} and position <= ${'upTo'}
  for update`

/**
 * Takes those that no other process has taken. Compares their positions in Kafka, too: a server that took over after they were
 * read may have given their positions here to other commands.
 */
export const takeWaiting = sql<
  WaitingPartition & { read: readonly Pick<WaitingRow, 'position' | 'origin'>[] },
  { position: bigint }
>`
  delete from waiting_commands where ctid = any (array(
    select found.place
    from ${{ rows: 'read', columns: { position: 'bigint', origin: 'text' } }} read
    cross join lateral (
      select ctid as place from waiting_commands w
      where w.merchant_id = ${'merchantId'} and w.topic = ${'topic'} and w.partition = ${'partition'}
        and w.position = read.position and w.origin = read.origin
      offset 0
    ) found
  ))
  returning position`
