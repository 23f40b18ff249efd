import { sql } from '../../platform/postgres.ts'

export type SealedWith = { merchantId: string; payoutId: string; keyId: number }

/** With which key bank details are sealed, in the order of the primary key, from the one behind the given on. */
export const sealedWith = sql<{ merchantId: string; payoutId: string; limit: number }, SealedWith>`
  select merchant_id, payout_id, get_byte(sealed, 0) as key_id from payout_commands
  where (merchant_id, payout_id) > (${'merchantId'}, ${'payoutId'})
  order by merchant_id, payout_id
  limit ${'limit'}`

type Keys = { merchantIds: string[]; payoutIds: string[] }

/** Locks them too, against another rotation. Intake only adds rows, and dispatch only reads them: neither waits. */
export const lockSealed = sql<Keys, { merchantId: string; payoutId: string; sealed: Buffer }>`
  select c.merchant_id, c.payout_id, c.sealed
  from unnest(${'merchantIds'}::text[], ${'payoutIds'}::text[]) as wanted (merchant_id, payout_id)
  cross join lateral (
    select merchant_id, payout_id, sealed from payout_commands
    where payout_commands.merchant_id = wanted.merchant_id and payout_commands.payout_id = wanted.payout_id
    for update
  ) c`

/** They are locked, so each stays at the place where it is found. */
export const replaceSealed = sql<Keys & { sealeds: Buffer[] }>`
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

/** Callbacks that wait for their merchant, by the key that sealed them. */
export const sealedCallbacks = sql<object, { keyId: number; count: number }>`
  select get_byte(sealed, 0) as key_id, count(*)::int as count from kept_callbacks group by 1`

/** The fingerprint key's proof, under 0, stays. */
export const retireProofs = sql<{ keyIds: number[] }>`
  delete from key_proofs where key_id = any(${'keyIds'}::smallint[]) and key_id <> 0`
