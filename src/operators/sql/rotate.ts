import type { PayoutKey } from '../../domain/identifiers.ts'
import type { KeptKey } from '../../ledger/callbacks/sql/kept-callbacks.ts'

import { sql } from '../../platform/postgres/postgres.ts'

export type SealedWith = PayoutKey & { keyId: number }

/** Which key seals bank details, in the order of the primary key, starting after the given one. */
export const sealedWith = sql<PayoutKey & { limit: number }, SealedWith>`
  select merchant_id, payout_id, get_byte(sealed, 0) as key_id from payout_commands
  where (merchant_id, payout_id) > (${'merchantId'}, ${'payoutId'})
  order by merchant_id, payout_id
  limit ${'limit'}`

/** Locks them too, against another rotation. Intake only adds rows, and dispatch only reads them, so neither waits. */
export const lockSealed = sql<{ wanted: readonly PayoutKey[] }, PayoutKey & { sealed: Buffer }>`
  select c.merchant_id, c.payout_id, c.sealed
  from ${{ rows: 'wanted', columns: { merchantId: 'text', payoutId: 'text' } }} wanted
  cross join lateral (
    select merchant_id, payout_id, sealed from payout_commands
    where payout_commands.merchant_id = wanted.merchant_id and payout_commands.payout_id = wanted.payout_id
    for update
  ) c`

/** They are locked, so each stays where it was found. */
export const replaceSealed = sql<{ fresh: readonly (PayoutKey & { sealed: Buffer })[] }>`
  update payout_commands c set sealed = fresh.sealed
  from (
    select given.sealed,
      (select ctid from payout_commands
       where payout_commands.merchant_id = given.merchant_id and payout_commands.payout_id = given.payout_id) as place
    from ${{ rows: 'fresh', columns: { merchantId: 'text', payoutId: 'text', sealed: 'bytea' } }} given
  ) fresh
  where c.ctid = fresh.place`

/** Dead letters that wait for the relay, or that Kafka refused, by the key that sealed them. */
export const waitingDeadLetters = sql<object, { keyId: number; count: number }>`
  select get_byte(value, 0) as key_id, count(*)::int as count
  from (select types[1] as type, contents[1] as value from outbox union all select type, value from outbox_refused) letters
  where type = 'in.payoutd.DeadLetter' group by 1`

/** Commands that wait for their merchant's locks, by the key that sealed them. */
export const sealedWaiting = sql<object, { keyId: number; count: number }>`
  select get_byte(sealed, 0) as key_id, count(*)::int as count from waiting_commands group by 1`

type WaitingCommandKey = { merchantId: string; topic: string; partition: number; position: bigint }

/** Waiting commands that another key seals, after the given one. Locks them; skips those that intake is storing now. */
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

export const replaceWaiting = sql<{ fresh: readonly (WaitingCommandKey & { sealed: Buffer })[] }>`
  update waiting_commands w set sealed = fresh.sealed
  from ${{
    rows: 'fresh',
    columns: { merchantId: 'text', topic: 'text', partition: 'int', position: 'bigint', sealed: 'bytea' },
  }} fresh
  where w.merchant_id = fresh.merchant_id and w.topic = fresh.topic and w.partition = fresh.partition
    and w.position = fresh.position`

/** Callbacks that wait for their merchant, by the key that sealed them. */
export const sealedCallbacks = sql<object, { keyId: number; count: number }>`
  select get_byte(sealed, 0) as key_id, count(*)::int as count from kept_callbacks group by 1`

/** Kept callbacks that another key seals, after the given one. Locks them; leaves those in use to the next rotation. */
export const lockOldCallbacks = sql<KeptKey & { keyId: number; limit: number }, KeptKey & { sealed: Buffer }>`
  select merchant_id, kind, order_no, query_hash, sealed from kept_callbacks
  where (merchant_id, kind, order_no, query_hash)
      > (${'merchantId'}, ${'kind'}, ${'orderNo'}, ${'queryHash'}::bytea)
    and get_byte(sealed, 0) <> ${'keyId'}::int
  order by merchant_id, kind, order_no, query_hash
  limit ${'limit'}
  for update skip locked`

export const replaceCallbacks = sql<{ fresh: readonly (KeptKey & { sealed: Buffer })[] }>`
  update kept_callbacks k set sealed = fresh.sealed
  from ${{
    rows: 'fresh',
    columns: { merchantId: 'text', kind: 'text', orderNo: 'text', queryHash: 'bytea', sealed: 'bytea' },
  }} fresh
  where k.merchant_id = fresh.merchant_id and k.kind = fresh.kind and k.order_no = fresh.order_no
    and k.query_hash = fresh.query_hash`

/** Dead letters that Kafka refused and another key seals, after this position. */
export const lockOldDeadLetters = sql<
  { position: bigint; keyId: number; limit: number },
  { position: bigint; origin: string; sealed: Buffer }
>`
  select position, headers->>'origin' as origin, value as sealed from outbox_refused
  where position > ${'position'} and type = 'in.payoutd.DeadLetter' and get_byte(value, 0) <> ${'keyId'}::int
  order by position
  limit ${'limit'}
  for update skip locked`

export const replaceDeadLetters = sql<{ fresh: readonly { position: bigint; sealed: Buffer }[] }>`
  update outbox_refused r set value = fresh.sealed
  from ${{ rows: 'fresh', columns: { position: 'bigint', sealed: 'bytea' } }} fresh
  where r.position = fresh.position`

/**
 * Dead letters that wait for the relay and another key seals, after this one. The relay may be publishing one under its former
 * seal.
 */
export const lockWaitingDeadLetters = sql<
  { shard: number; topic: string; position: bigint; keyId: number; limit: number },
  { shard: number; topic: string; position: bigint; origin: string; sealed: Buffer }
>`
  select shard, topic, position, headers[1]->>'origin' as origin, contents[1] as sealed from outbox
  where (shard, topic, position) > (${'shard'}::smallint, ${'topic'}, ${'position'}::bigint)
    and types[1] = 'in.payoutd.DeadLetter' and get_byte(contents[1], 0) <> ${'keyId'}::int
  order by shard, topic, position
  limit ${'limit'}
  for update skip locked`

export const replaceWaitingDeadLetters = sql<{
  fresh: readonly { shard: number; topic: string; position: bigint; sealed: Buffer }[]
}>`
  update outbox o set contents = array[fresh.sealed]
  from ${{
    rows: 'fresh',
    columns: { shard: 'smallint', topic: 'text', position: 'bigint', sealed: 'bytea' },
  }} fresh
  where o.shard = fresh.shard and o.topic = fresh.topic and o.position = fresh.position`

/** Keeps the fingerprint key's proof, under 0. */
export const retireProofs = sql<{ keyIds: number[] }>`
  delete from key_proofs where key_id = any(${'keyIds'}::smallint[]) and key_id <> 0`
