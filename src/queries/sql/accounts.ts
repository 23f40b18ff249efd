import type { NamedAccount } from '../../gateway/dialect/account.ts'
import { sql } from '../../platform/postgres/postgres.ts'

type AccountsOf = { merchantId: string }

/** `accountId` null: no attempt may be alive anywhere. */
export type OpenAt = { merchantId: string; accountId: string | null; count: number }

/** Payins that have not ended, by the account that has them; for one merchant, or (null) for all. */
export const payinsByAccount = sql<{ merchantId: string | null }, OpenAt>`
  select merchant_id, account_id, count(*)::int as count from payins
  where state in ('creating', 'unknown', 'open', 'review') and (${'merchantId'}::text is null or merchant_id = ${'merchantId'})
  group by 1, 2`

/** Every merchant's settings that were ever in force, the oldest first. `inForce`: these are now. */
export const accountsKnown = sql<object, NamedAccount & AccountsOf & { inForce: boolean }>`
  select s.merchant_id, s.account_id, s.base_url, s.mch_id, s.dialect_name, s.settings_hash = m.settings_hash as in_force
  from gateway_settings s join merchants m using (merchant_id)
  order by s.first_seen, s.settings_hash`
