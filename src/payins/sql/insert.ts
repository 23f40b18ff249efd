import type { Payin } from '../../domain/payin/payin.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { payinColumns } from './columns.ts'

type NewPayin = {
  merchantId: string
  payinId: string
  accountId: string
  settingsHash: string
  fingerprint: Buffer
  amount: bigint
  currency: string
  traceparent: string | null
  leaseMs: number
  expireMs: number
}

/**
 * Inserts the intent to create a payin at the gateway; returns no row if it exists already, or if other settings are in force. It
 * takes no lock on the merchant's row, which would hold up claims: an adoption looks at no payin, so one that commits meanwhile
 * counts as later than the intent.
 */
export const insertPayin = sql<NewPayin, Payin>`
  insert into payins as p (merchant_id, payin_id, account_id, fingerprint, amount, currency, traceparent, state, version, due_at,
                           expires_at)
  select ${'merchantId'}, ${'payinId'}, ${'accountId'}, ${'fingerprint'}, ${'amount'}, ${'currency'}, ${'traceparent'}, 'creating', 1,
          now() + ${'leaseMs'} * interval '1 millisecond', now() + ${'expireMs'} * interval '1 millisecond'
  where not exists (
    select from merchants
    where merchant_id = ${'merchantId'} and settings_hash not in ('', ${'settingsHash'})
  )
  on conflict (merchant_id, payin_id) do nothing
  returning ${payinColumns}`

export const payinWithFingerprint = sql<
  { merchantId: string; payinId: string },
  Payin & { fingerprint: Buffer }
>`
  select ${payinColumns}, p.fingerprint from payins p
  where p.merchant_id = ${'merchantId'} and p.payin_id = ${'payinId'}`
