import type { KeptKey } from '../../ledger/callbacks/sql/kept-callbacks.ts'
import { sql } from '../../platform/postgres/postgres.ts'

export type SealedWith = { merchantId: string; payoutId: string; keyId: number }

/** With which key bank details are sealed, in the order of the primary key, from the one behind the given on. */
export const sealedWith = sql<{ merchantId: string; payoutId: string; limit: number }, SealedWith>`
  select merchant_id, payout_id, get_byte(sealed, 0) as key_id from payout_commands
  where (merchant_id, payout_id) > (${'merchantId'}, ${'payoutId'})
  order by merchant_id, payout_id
  limit ${'limit'}`

type RotatedKeys = { merchantIds: string[]; payoutIds: string[] }

/** Locks them too, against another rotation. Intake only adds rows, and dispatch only reads them: neither waits. */
export const lockSealed = sql<RotatedKeys, { merchantId: string; payoutId: string; sealed: Buffer }>`
  select c.merchant_id, c.payout_id, c.sealed
  from unnest(${'merchantIds'}::text[], ${'payoutIds'}::text[]) as wanted (merchant_id, payout_id)
  cross join lateral (
    select merchant_id, payout_id, sealed from payout_commands
    where payout_commands.merchant_id = wanted.merchant_id and payout_commands.payout_id = wanted.payout_id
    for update
  ) c`

/** They are locked, so each stays at the place where it is found. */
export const replaceSealed = sql<RotatedKeys & { sealeds: Buffer[] }>`
  update payout_commands c set sealed = fresh.sealed
  from (
    select given.sealed,
      (select ctid from payout_commands
       where payout_commands.merchant_id = given.merchant_id and payout_commands.payout_id = given.payout_id) as place
    from unnest(${'merchantIds'}::text[], ${'payoutIds'}::text[], ${'sealeds'}::bytea[])
      as given (merchant_id, payout_id, sealed)
  ) fresh
  where c.ctid = fresh.place`

/** Dead letters that wait for the relay, or that Kafka refused, by the key that sealed them. */
export const waitingDeadLetters = sql<object, { keyId: number; count: number }>`
  select get_byte(value, 0) as key_id, count(*)::int as count
  from (select type, value from outbox union all select type, value from outbox_refused) letters
  where type = 'in.payoutd.DeadLetter' group by 1`

/** Commands that wait for their merchant's locks, by the key that sealed them. */
export const sealedWaiting = sql<object, { keyId: number; count: number }>`
  select get_byte(sealed, 0) as key_id, count(*)::int as count from waiting_commands group by 1`

type WaitingCommandKey = { merchantId: string; topic: string; partition: number; position: bigint }

/** Commands that wait and another key seals, from behind the given one on. Locked; those that are taken in now are passed over. */
export const lockOldWaiting = sql<
  WaitingCommandKey & { keyId: number; limit: number },
  WaitingCommandKey & { origin: string; sealed: Buffer }
>`
  select merchant_id, topic, partition, position, origin, sealed from waiting_commands
  where (merchant_id, topic, partition, position)
      > (${'merchantId'}, ${'topic'}, ${'partition'}::int, ${'position'}::bigint)
    and get_byte(sealed, 0) <> ${'keyId'}::int
  order by merchant_id, topic, partition, position
  limit ${'limit'}
  for update skip locked`

export const replaceWaiting = sql<{
  merchantIds: string[]
  topics: string[]
  partitions: number[]
  positions: bigint[]
  sealeds: Buffer[]
}>`
  update waiting_commands w set sealed = fresh.sealed
  from unnest(${'merchantIds'}::text[], ${'topics'}::text[], ${'partitions'}::int[], ${'positions'}::bigint[],
              ${'sealeds'}::bytea[]) as fresh (merchant_id, topic, partition, position, sealed)
  where w.merchant_id = fresh.merchant_id and w.topic = fresh.topic and w.partition = fresh.partition
    and w.position = fresh.position`

/** Callbacks that wait for their merchant, by the key that sealed them. */
export const sealedCallbacks = sql<object, { keyId: number; count: number }>`
  select get_byte(sealed, 0) as key_id, count(*)::int as count from kept_callbacks group by 1`

/** Kept callbacks that another key seals, from behind the given one on. Locked; those in use are left to the next rotation. */
export const lockOldCallbacks = sql<KeptKey & { keyId: number; limit: number }, KeptKey & { sealed: Buffer }>`
  select merchant_id, kind, order_no, query_hash, sealed from kept_callbacks
  where (merchant_id, kind, order_no, query_hash)
      > (${'merchantId'}, ${'kind'}, ${'orderNo'}, ${'queryHash'}::bytea)
    and get_byte(sealed, 0) <> ${'keyId'}::int
  order by merchant_id, kind, order_no, query_hash
  limit ${'limit'}
  for update skip locked`

export const replaceCallbacks = sql<{
  merchantIds: string[]
  kinds: string[]
  orderNos: string[]
  queryHashes: Buffer[]
  sealeds: Buffer[]
}>`
  update kept_callbacks k set sealed = fresh.sealed
  from unnest(${'merchantIds'}::text[], ${'kinds'}::text[], ${'orderNos'}::text[], ${'queryHashes'}::bytea[],
              ${'sealeds'}::bytea[]) as fresh (merchant_id, kind, order_no, query_hash, sealed)
  where k.merchant_id = fresh.merchant_id and k.kind = fresh.kind and k.order_no = fresh.order_no
    and k.query_hash = fresh.query_hash`

/** Dead letters that Kafka refused and another key seals, behind this position. */
export const lockOldDeadLetters = sql<
  { position: bigint; keyId: number; limit: number },
  { position: bigint; origin: string; sealed: Buffer }
>`
  select position, headers->>'origin' as origin, value as sealed from outbox_refused
  where position > ${'position'} and type = 'in.payoutd.DeadLetter' and get_byte(value, 0) <> ${'keyId'}::int
  order by position
  limit ${'limit'}
  for update skip locked`

export const replaceDeadLetters = sql<{ positions: bigint[]; sealeds: Buffer[] }>`
  update outbox_refused r set value = fresh.sealed
  from unnest(${'positions'}::bigint[], ${'sealeds'}::bytea[]) as fresh (position, sealed)
  where r.position = fresh.position`

/**
 * Dead letters that wait for the relay and another key seals, behind this one. The relay may be publishing one as it was
 * sealed before.
 */
export const lockWaitingDeadLetters = sql<
  { shard: number; topic: string; position: bigint; keyId: number; limit: number },
  { shard: number; topic: string; position: bigint; origin: string; sealed: Buffer }
>`
  select shard, topic, position, headers->>'origin' as origin, value as sealed from outbox
  where (shard, topic, position) > (${'shard'}::smallint, ${'topic'}, ${'position'}::bigint)
    and type = 'in.payoutd.DeadLetter' and get_byte(value, 0) <> ${'keyId'}::int
  order by shard, topic, position
  limit ${'limit'}
  for update skip locked`

export const replaceWaitingDeadLetters = sql<{
  shards: number[]
  topics: string[]
  positions: bigint[]
  sealeds: Buffer[]
}>`
  update outbox o set value = fresh.sealed
  from unnest(${'shards'}::smallint[], ${'topics'}::text[], ${'positions'}::bigint[], ${'sealeds'}::bytea[])
    as fresh (shard, topic, position, sealed)
  where o.shard = fresh.shard and o.topic = fresh.topic and o.position = fresh.position`

/** The fingerprint key's proof, under 0, stays. */
export const retireProofs = sql<{ keyIds: number[] }>`
  delete from key_proofs where key_id = any(${'keyIds'}::smallint[]) and key_id <> 0`
