import { sql } from '../../platform/postgres/postgres.ts'

export type AwaitingKey = { merchantId: string; keyId: number; count: number }

/** Payouts that wait for a key, by the id of that key: the first byte of the sealed value. */
export const awaitingKey = sql<object, AwaitingKey>`
  select merchant_id, key_id, count(*)::int as count
  from (
    select p.merchant_id,
      (select get_byte(c.sealed, 0) from payout_commands c
       where c.merchant_id = p.merchant_id and c.payout_id = p.payout_id) as key_id
    from payouts p where p.awaits_key
  ) waiting
  group by merchant_id, key_id
  order by merchant_id, key_id`
