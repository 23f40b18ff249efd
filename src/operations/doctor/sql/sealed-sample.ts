import type { Paise } from '../../../payout/money.ts'
import { sql } from '../../../platform/postgres.ts'

export type SealedSample = {
  keyId: number
  merchantId: string
  payoutId: string
  sealed: Buffer
  fingerprint: Buffer
  amount: Paise
  currency: string
  state: string
}

/**
 * One payout per key id in use. Whole tables of up to 8 MB are looked through, and of larger ones about 1,000
 * pages, evenly spread: the key id is in no index, and reading all of it would take minutes.
 */
export const sealedSample = sql<object, SealedSample>`
  select s.key_id, s.merchant_id, s.payout_id, s.sealed, s.fingerprint, p.amount, p.currency, p.state
  from (
    select distinct on (get_byte(c.sealed, 0)) get_byte(c.sealed, 0) as key_id, c.*
    from payout_commands c
      tablesample system (least(100, 100.0 * 1000 * 8192 / greatest(1, pg_relation_size('payout_commands'))))
    order by get_byte(c.sealed, 0)
  ) s
  join payouts p on p.merchant_id = s.merchant_id and p.payout_id = s.payout_id`
