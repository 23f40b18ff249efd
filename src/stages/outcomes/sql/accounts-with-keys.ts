import { sql } from '../../../platform/postgres/postgres.ts'

type MerchantKey = { merchantId: string; keyFingerprint: string }

/**
 * The accounts of merchants at which these keys were ever in force, and those that ever shared a key with one of them: if a
 * gateway moves and changes the key later, it signs with the new key what it says about orders from before.
 */
export const accountsWithKeys = sql<{ keys: readonly MerchantKey[] }, MerchantKey & { accountId: string }>`
  with recursive connected as (
    select merchant_id, key_fingerprint, account_id
    from gateway_settings
    where (merchant_id, key_fingerprint) in ${{ rows: 'keys', columns: { merchantId: 'text', keyFingerprint: 'text' } }}
    union
    select c.merchant_id, c.key_fingerprint, other.account_id
    from connected c
    join gateway_settings own on own.merchant_id = c.merchant_id and own.account_id = c.account_id
    join gateway_settings other on other.merchant_id = own.merchant_id and other.key_fingerprint = own.key_fingerprint
  )
  select merchant_id, key_fingerprint, account_id from connected`
