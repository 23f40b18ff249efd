import type { PayoutKey } from '../../../domain/identifiers.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

/** Each gateway account at which an attempt was made; null: nobody knows at which. */
export const accountsOfAttempts = sql<
  { payouts: readonly PayoutKey[] },
  PayoutKey & { accountId: string | null }
>`
  select distinct p.merchant_id, p.payout_id, s.account_id
  from ${{ rows: 'payouts', columns: { merchantId: 'text', payoutId: 'text' } }} p
  join attempts a on a.merchant_id = p.merchant_id and a.payout_id = p.payout_id
  left join gateway_settings s on s.merchant_id = a.merchant_id and s.settings_hash = a.settings_hash`
