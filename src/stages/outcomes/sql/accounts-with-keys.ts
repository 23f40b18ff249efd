import { sql } from '../../../platform/postgres/postgres.ts'

type MerchantKey = { merchantId: string; keyFingerprint: string }

/** The accounts at which these keys of merchants were ever in force. */
export const accountsWithKeys = sql<{ keys: readonly MerchantKey[] }, MerchantKey & { accountId: string }>`
  select distinct merchant_id, key_fingerprint, account_id
  from gateway_settings
  where (merchant_id, key_fingerprint) in ${{ rows: 'keys', columns: { merchantId: 'text', keyFingerprint: 'text' } }}`
